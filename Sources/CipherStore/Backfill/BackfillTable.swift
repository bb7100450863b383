internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
package import CipherSQLite

/// The table `cipherstore_backfill`, in which a database records the progress of each backfill.
package enum BackfillTable {
    static let name = "cipherstore_backfill"

    /// The state of one backfill.
    package struct Entry: Sendable {
        var name: String
        var table: String
        /// The number of rows visited in all runs.
        var done: Int
        package var isFinished: Bool
        /// The reason that the latest run ended early; `nil` if that run did not end early, or was only canceled or
        /// killed.
        package var failure: String?
        /// The time of the last change: ISO 8601, in UTC.
        var updatedAt: String
    }

    // MARK: Reading

    package static func exists(_ connection: Connection) throws -> Bool {
        try connection.value(
            Bool.self, "SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = \(name))")
            ?? false
    }

    /// Returns all backfills, ordered by name.
    static func entries(_ connection: Connection) throws -> [Entry] {
        guard try exists(connection) else { return [] }
        var entries: [Entry] = []
        try StoreError.readingOwnTable(name, connection) {
            try connection.forEachRow(
                """
                SELECT name, tableName, done, finished, failure, updatedAt FROM main.cipherstore_backfill ORDER BY name
                """
            ) { row in
                entries.append(
                    Entry(
                        name: try row.get(at: 0), table: try row.get(at: 1), done: try row.get(at: 2),
                        isFinished: try row.get(at: 3), failure: try row.get(at: 4), updatedAt: try row.get(at: 5)))
            }
        }
        return entries
    }

    package static func entry(_ name: String, _ connection: Connection) throws -> Entry? {
        try entries(connection).first { $0.name.utf8.elementsEqual(name.utf8) }
    }

    // MARK: Writing

    /// Creates the table if necessary, and a row for the backfill if it has none.
    ///
    /// - Parameter keyColumns: The number of columns in the keys of the backfill's table. Each key value is stored as
    ///   SQLite stores it, in a column without affinity, because not every value survives a round trip through Swift.
    static func begin(_ name: String, table: String, keyColumns: Int, _ connection: Connection) throws {
        if try !exists(connection) {
            try connection.execute(
                """
                CREATE TABLE cipherstore_backfill (name TEXT PRIMARY KEY NOT NULL, tableName TEXT NOT NULL,
                    done INTEGER NOT NULL, finished INTEGER NOT NULL, failure TEXT, updatedAt TEXT NOT NULL, key0)
                """)
        }
        let found = try ColumnState.read(table: Self.name, from: connection).map { SQLName($0.name) }
        for column in (0..<keyColumns).map(keyColumn) where !found.contains(SQLName(column)) {
            try connection.execute(SQL(text: "ALTER TABLE main.cipherstore_backfill ADD COLUMN \(column)"))
        }
        try connection.execute(
            """
            INSERT OR IGNORE INTO main.cipherstore_backfill(name, tableName, done, finished, updatedAt)
            VALUES (\(name), \(table), 0, 0, \(now))
            """)
    }

    /// Makes a backfill continue under its table's new name.
    static func move(_ name: String, to table: String, _ connection: Connection) throws {
        try connection.execute(
            "UPDATE main.cipherstore_backfill SET tableName = \(table), updatedAt = \(now) WHERE name = \(name)")
    }

    static func keyColumn(_ index: Int) -> String { "key\(index)" }

    /// Adds to the number of visited rows.
    static func advance(_ name: String, by rows: Int, isFinished: Bool, _ connection: Connection) throws {
        try connection.execute(
            """
            UPDATE main.cipherstore_backfill SET done = done + \(rows), finished = \(isFinished), failure = NULL,
                updatedAt = \(now) WHERE name = \(name)
            """)
    }

    static func fail(_ name: String, _ failure: String, _ connection: Connection) throws {
        try connection.execute(
            """
            UPDATE main.cipherstore_backfill SET failure = \(failure), updatedAt = \(now)
            WHERE name = \(name) AND NOT finished
            """)
    }

    static func forgetFailures(_ connection: Connection) throws {
        guard try exists(connection) else { return }
        try connection.execute("UPDATE main.cipherstore_backfill SET failure = NULL WHERE failure IS NOT NULL")
    }

    private static let now = SQL(text: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')")
}
