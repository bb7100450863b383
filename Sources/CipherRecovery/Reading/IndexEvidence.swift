internal import CipherCatalog
internal import CipherSQLiteFormat

/// The evidence in a table's indexes about which rows the table had.
struct IndexEvidence {
    enum Answer {
        /// Every undamaged index has an entry for the row, and together they contain all of its values.
        case current
        /// Every undamaged index has an entry for the row; if no index is undamaged, a damaged index has an entry for
        /// it. The values that are in no index may be old.
        case named
        /// An undamaged index has no entry for the row, so the row was deleted or is an old version.
        case denied
        case unknown
    }

    private let table: TableForm
    /// The fingerprints of the entries in undamaged indexes, by the index's position.
    private let whole: [Int: Set<UInt64>]
    /// The fingerprints of the remaining entries of the other indexes.
    private let rest: Set<UInt64>
    /// Whether the undamaged indexes together contain every column.
    private let coversRows: Bool

    init(_ table: TableForm, whole: [Int: Set<UInt64>], rest: Set<UInt64>) {
        self.table = table
        self.whole = whole
        self.rest = rest
        coversRows = table.stored.indices.allSatisfy { place in
            place == table.rowidValue
                || whole.keys.contains { table.indexes[$0].parts.contains { $0.position == table.stored[place] } }
        }
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
            let entry = table.entry(of: table.indexes[number], rowid, values)
            guard entries.contains(entry.fingerprint) else { return .denied }
            if entry.hasValue { isNamed = true }
        }
        if whole.isEmpty {
            isNamed = table.indexes.contains { index in
                guard index.isPlain else { return false }
                let entry = table.entry(of: index, rowid, values)
                return entry.hasValue && rest.contains(entry.fingerprint)
            }
        }
        guard isNamed else { return .unknown }
        return coversRows ? .current : .named
    }
}

/// The number of entries, and a sum that is the same for the same entries in any order.
///
/// Entries have different fingerprints, because each contains the rowid or the key of its row.
struct EntryTally: Equatable {
    private var count = 0
    private var sum: UInt64 = 0

    mutating func add(_ fingerprint: UInt64) {
        count += 1
        sum &+= fingerprint
    }
}

extension TableForm {
    /// Returns the fingerprints of a row's entries, by the index's position; 0 if an index is not plain.
    func entryPrints(_ rowid: Int64?, _ values: [RecordValue]) -> [UInt64] {
        indexes.map { $0.isPlain ? entry(of: $0, rowid, values).fingerprint : 0 }
    }

    /// Returns the entry that an index has for a row.
    fileprivate func entry(
        of index: IndexForm, _ rowid: Int64?, _ values: [RecordValue]
    ) -> (fingerprint: UInt64, hasValue: Bool) {
        var hasValue = false
        let entry = index.parts.map { part -> RecordValue in
            guard part.position >= 0, let place = stored.firstIndex(of: part.position), place != rowidValue
            else { return rowid.map { .integer($0) } ?? .null }
            let value = place < values.count ? values[place] : defaults[place].value
            if case .null = value {} else { hasValue = true }
            return value
        }
        return (entry.fingerprint(), hasValue)
    }
}
