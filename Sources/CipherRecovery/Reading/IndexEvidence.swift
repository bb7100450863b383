internal import CipherCatalog
internal import CipherSQLiteFormat

/// What the indexes of a table tell of its rows: which rows there were.
struct IndexEvidence {
    enum Answer {
        /// Every undamaged index has an entry for the row; if there is none, another one has.
        case confirmed
        /// An undamaged index has no entry for the row: it was deleted, or it is an old version.
        case denied
        case unknown
    }

    private let table: TableForm
    /// The entries of undamaged indexes, by the index's place.
    private let whole: [Int: Set<UInt64>]
    /// What is left of the others.
    private let rest: Set<UInt64>

    init(_ table: TableForm, whole: [Int: Set<UInt64>], rest: Set<UInt64>) {
        self.table = table
        self.whole = whole
        self.rest = rest
    }

    /// Whether an undamaged index tells of every row.
    var isComplete: Bool { !whole.isEmpty }

    /// What the indexes tell of a row.
    ///
    /// An entry of nothing but NULLs and the rowid is that of any row with NULLs there, also of another table's: it says
    /// nothing, while its absence does.
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
