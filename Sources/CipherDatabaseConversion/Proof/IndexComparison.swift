internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Compares the entries of one index in order, and the original's entries with its rows.
///
/// If the rows are equal and the entries are equal and in the same order, the copy's index is as correct as the
/// original's. The original's index is correct if its entries ascend and match its rows. Entries and rows are counted
/// and their fingerprints added up, which costs a fraction of looking up every row in every index, as `integrity_check`
/// does.
// Unchecked but safe across threads: mutable state is accessed only under `lock`.
final class IndexComparison: @unchecked Sendable {
    let layout: IndexLayout
    /// The positions of the index's columns in the rows that the walk through the table reads.
    let columns: [Int32]
    let order: KeyOrder
    /// The root page of the index in the original.
    let root: Int64
    private let sql: SQL
    /// The query for the entries, without an order.
    private let query: SQL
    private let path: String

    private let lock = Lock()
    private var isTaken = false
    private var hasEnded = false
    private var entries = Fingerprints()
    private var isOrdered = true

    /// - Parameter root: The root page of the index, the only tree from which the entries may come.
    /// - Returns: `nil` if SQL cannot list the entries, or their order is unknown. `integrity_check` must then check
    ///   the index.
    init?(
        _ layout: IndexLayout, root: Int64, isUTF8: Bool, _ reading: TableReading, _ connection: Connection
    ) throws {
        guard let columns = layout.columns(of: reading), let order = layout.order(isUTF8: isUTF8) else { return nil }
        let list = layout.parts.map(\.sql).joined(by: ", ")
        let sorted = layout.parts.filter(\.isKey).map { part in
            let end: SQL = part.isDescending ? " DESC" : ""
            return "\(part.sql) COLLATE \(part.collation)\(end)" as SQL
        }.joined(by: ", ")
        let query: SQL = "SELECT \(list) FROM main.\(layout.table) INDEXED BY \(layout.name)"
        // Old engines read through an index that is no smaller than its table only to obtain its order.
        let usable = try [query, "\(query) ORDER BY \(sorted)"].first {
            try Self.readsOnly(root, $0, connection)
        }
        guard let usable else { return nil }
        self.layout = layout
        self.columns = columns
        self.order = order
        self.root = root
        sql = usable
        self.query = query
        path = connection.path
    }

    /// Returns whether a query is answered from the entries of this index alone.
    private static func readsOnly(_ root: Int64, _ query: SQL, _ connection: Connection) throws -> Bool {
        do {
            return try connection.standingInForAbsentFunctions { try connection.rootPages(of: query) == [root] }
        } catch let error as DatabaseError where error.extendedCode == DatabaseError.generic {
            // Source: SQLite, "The INDEXED BY Clause": a statement that cannot use the index does not compile.
            return false
        }
    }

    /// Whether the entries have been compared.
    var isSettled: Bool { lock.withLock { hasEnded } }

    /// Adopts results that were obtained in another way, so that ``run(_:progress:)`` does nothing.
    func settle(_ entries: Fingerprints, isOrdered: Bool) {
        lock.withLock {
            isTaken = true
            hasEnded = true
            self.entries = entries
            self.isOrdered = isOrdered
        }
    }

    /// Compares the entries, unless another worker does.
    func run(_ pair: ConnectionPair, progress: (Int64) throws -> Void) throws {
        let isFirst = lock.withLock {
            defer { isTaken = true }
            return !isTaken
        }
        guard isFirst else { return }
        // If an index uses a column computed by an app-defined function, it holds the results: they are read, not
        // computed.
        try pair.original.standingInForAbsentFunctions {
            try pair.copy.standingInForAbsentFunctions { try compare(pair, progress) }
        }
    }

    /// Returns the query for the entry with these values, which searches the index.
    func lookup(_ values: [SQL]) -> SQL { "\(query) WHERE \(layout.condition(values))" }

    /// Describes the damage to the original's index, once the index and the rows have been read; `nil` if the index is
    /// undamaged.
    ///
    /// - Parameter rows: The fingerprints of the entries that the rows require.
    func damage(_ rows: Fingerprints) -> String? {
        let (entries, isOrdered) = lock.withLock { (self.entries, self.isOrdered) }
        if entries.count != rows.count {
            return "the number of entries in index \(layout.name) is \(entries.count) instead of \(rows.count)"
        }
        if entries != rows { return "index \(layout.name) has entries that match no row of table \(layout.table)" }
        return isOrdered ? nil : "index \(layout.name) has entries that are out of order or not unique"
    }

    /// Reads the entries again, and returns whether they ascend.
    func isOrdered(_ connection: Connection) throws -> Bool {
        try connection.withStatement(sql, isKept: false) { entry in
            var entries = EntryTally(order, isUnique: false)
            while try entry.step() { entries.add((0..<Int32(entry.columnCount)).map { RecordValue(entry, $0) }) }
            return entries.isOrdered
        }
    }

    private func compare(_ pair: ConnectionPair, _ progress: (Int64) throws -> Void) throws {
        try pair.original.withStatement(sql, isKept: false) { original in
            try pair.copy.withStatement(sql, isKept: false) { copy in
                let width = Int32(original.columnCount)
                var bytes: Int64 = 0
                var entries = EntryTally(order, isUnique: layout.isUnique)
                var values: [RecordValue] = []
                while try original.step() {
                    guard try copy.step() else { throw differs }
                    for column in 0..<width {
                        guard original.column(column, equals: copy, column, size: &bytes) else { throw differs }
                    }
                    values.removeAll(keepingCapacity: true)
                    for column in 0..<width { values.append(RecordValue(original, column)) }
                    entries.add(values)
                    if bytes > 1 << 18 {
                        try progress(bytes)
                        bytes = 0
                    }
                }
                guard try !copy.step() else { throw differs }
                settle(entries.fingerprints, isOrdered: entries.isOrdered)
            }
        }
    }

    private var differs: StoreError { .proof(path, "the entries of index \(layout.name) differ") }
}

/// The tally of an index's entries, added in the order of the index.
struct EntryTally {
    private(set) var fingerprints = Fingerprints()
    /// Whether the entries ascend, and no key of a UNIQUE index is repeated.
    private(set) var isOrdered = true
    private var order: KeyOrder
    private let isUnique: Bool

    init(_ order: KeyOrder, isUnique: Bool) {
        self.order = order
        self.isUnique = isUnique
    }

    mutating func add(_ entry: [RecordValue]) {
        var fingerprint = ValueFingerprint()
        for value in entry { fingerprint.add(value) }
        fingerprints.add(fingerprint.finish())
        switch order.take(entry) {
        case .ascends: break
        case .repeatsKey: if isUnique { isOrdered = false }
        case .doesNotAscend: isOrdered = false
        }
    }
}
