internal import CipherCatalog
internal import CipherSQLiteFormat

/// What the indexes of a table tell of its rows: which rows there were.
struct IndexEvidence {
    enum Answer {
        /// Every undamaged index has an entry for the row; where there is none, another one has.
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

    func answer(_ rowid: Int64?, _ values: [RecordValue]) -> Answer {
        guard whole.isEmpty else {
            let isNamed = whole.allSatisfy { number, entries in
                entries.contains(fingerprint(table.indexes[number], rowid, values))
            }
            return isNamed ? .confirmed : .denied
        }
        for index in table.indexes where index.isPlain {
            if rest.contains(fingerprint(index, rowid, values)) { return .confirmed }
        }
        return .unknown
    }

    private func fingerprint(_ index: IndexForm, _ rowid: Int64?, _ values: [RecordValue]) -> UInt64 {
        index.parts.map { part -> RecordValue in
            guard part.position >= 0, let place = table.stored.firstIndex(of: part.position), place != table.rowidValue
            else { return rowid.map { .integer($0) } ?? .null }
            return place < values.count ? values[place] : table.defaults[place].value
        }.fingerprint()
    }
}
