import CipherSQLite

/// The comparison of one index's entries, in the order of the index.
///
/// Equal entries in equal order, over equal rows, make the copy's index as consistent as the original's. It costs a
/// fraction of looking every row up in every index, as `integrity_check` does.
final class IndexComparison: @unchecked Sendable {
    // `isTaken` is read and written only under `lock`; the rest never changes.
    private let name: String
    private let sql: SQL
    private let path: String

    private let lock = Lock()
    private var isTaken = false

    /// A comparison of the index, or `nil` for one on expressions or with a condition, whose entries SQL cannot list
    /// without their text.
    init?(_ name: String, isPartial: Bool, table: String, rowid: String?, _ connection: Connection) throws {
        guard !isPartial else { return nil }
        var columns: [String] = []
        var order: [String] = []
        var canBeListed = true
        try connection.forEachRow(SQL(text: "PRAGMA index_xinfo(\(SQL.quoted(identifier: name)))")) { row in
            switch (try row.get(Int.self, at: 1), try row.get(String?.self, at: 2)) {
            case (-1, _):
                if let rowid { columns.append(rowid) } else { canBeListed = false }
            case (_, let column?):
                columns.append(SQL.quoted(identifier: column))
                guard try row.get(Int.self, at: 5) != 0, let collation = try row.get(String?.self, at: 4) else {
                    return
                }
                order.append(
                    "\(SQL.quoted(identifier: column)) COLLATE \(SQL.quoted(identifier: collation))"
                        + (try row.get(Int.self, at: 3) != 0 ? " DESC" : ""))
            default: canBeListed = false
            }
        }
        guard canBeListed, !columns.isEmpty else { return nil }
        self.name = name
        path = connection.path
        let query =
            "SELECT \(columns.joined(separator: ", ")) FROM \(SQL.quoted(identifier: table)) "
            + "INDEXED BY \(SQL.quoted(identifier: name))"
        // Old engines walk through an index that is no smaller than its table only for the sake of its order.
        let usable = try [query, "\(query) ORDER BY \(order.joined(separator: ", "))"].first {
            try Self.isUsable($0, connection)
        }
        guard let usable else { return nil }
        sql = SQL(text: usable)
    }

    private static func isUsable(_ query: String, _ connection: Connection) throws -> Bool {
        do {
            _ = try connection.standingInForAbsentFunctions { try Statement(query, on: connection) }
            return true
        } catch let error as DatabaseError where error.message.contains("no query solution") {
            return false
        }
    }

    /// Compares, unless another worker does.
    func run(_ pair: ConnectionPair, progress: (Int64) throws -> Void) throws {
        let isFirst = lock.withLock {
            defer { isTaken = true }
            return !isTaken
        }
        guard isFirst else { return }
        // An index on a column that is computed by a function of the app's holds the results: they are read, not computed.
        try pair.original.standingInForAbsentFunctions {
            try pair.copy.standingInForAbsentFunctions { try compare(pair, progress) }
        }
    }

    private func compare(_ pair: ConnectionPair, _ progress: (Int64) throws -> Void) throws {
        try pair.original.withStatement(sql, isKept: false) { original in
            try pair.copy.withStatement(sql, isKept: false) { copy in
                let width = Int32(original.columnCount)
                var bytes: Int64 = 0
                while try original.step() {
                    guard try copy.step() else { throw differs }
                    for column in 0..<width {
                        guard original.column(column, equals: copy, column, size: &bytes) else { throw differs }
                    }
                    if bytes > 1 << 18 {
                        try progress(bytes)
                        bytes = 0
                    }
                }
                guard try !copy.step() else { throw differs }
            }
        }
    }

    private var differs: StoreError { .proof(path, "the entries of index \(name) differ") }
}
