internal import CipherCatalog
internal import CipherSQLiteFormat

/// The evidence in a table's indexes about which rows the table had.
struct IndexEvidence {
    enum Answer {
        /// Every undamaged index has an entry for the row; if no index is undamaged, a damaged index has an entry for
        /// it.
        case confirmed
        /// An undamaged index has no entry for the row, so the row was deleted or is an old version.
        case denied
        case unknown
    }

    private let table: TableForm
    /// The fingerprints of the entries in undamaged indexes, by the index's position.
    private let whole: [Int: Set<UInt64>]
    /// The fingerprints of the remaining entries of the other indexes.
    private let rest: Set<UInt64>

    init(_ table: TableForm, whole: [Int: Set<UInt64>], rest: Set<UInt64>) {
        self.table = table
        self.whole = whole
        self.rest = rest
    }

    /// Whether an undamaged index covers every row.
    var isComplete: Bool { !whole.isEmpty }

    /// Returns the evidence of the indexes about a row.
    ///
    /// An entry that holds only NULLs and the rowid matches any row with NULLs in these columns, even a row of another
    /// table. Therefore, the presence of such an entry is no evidence, but its absence is.
    func answer(_ rowid: Int64?, _ values: [RecordValue]) -> Answer {
        var isNamed = false
        for (number, entries) in whole {
            let entry = entry(of: table.indexes[number], rowid, values)
            guard entries.contains(entry.fingerprint) else { return .denied }
            if entry.hasValue { isNamed = true }
        }
        if whole.isEmpty {
            isNamed = table.indexes.contains { index in
                guard index.isPlain else { return false }
                let entry = entry(of: index, rowid, values)
                return entry.hasValue && rest.contains(entry.fingerprint)
            }
        }
        return isNamed ? .confirmed : .unknown
    }

    private func entry(
        of index: IndexForm, _ rowid: Int64?, _ values: [RecordValue]
    ) -> (fingerprint: UInt64, hasValue: Bool) {
        var hasValue = false
        let entry = index.parts.map { part -> RecordValue in
            guard part.position >= 0, let place = table.stored.firstIndex(of: part.position), place != table.rowidValue
            else { return rowid.map { .integer($0) } ?? .null }
            let value = place < values.count ? values[place] : table.defaults[place].value
            if case .null = value {} else { hasValue = true }
            return value
        }
        return (entry.fingerprint(), hasValue)
    }
}
