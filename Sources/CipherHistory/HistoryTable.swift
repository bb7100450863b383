internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
package import CipherSQLite

/// The table `cipherstore_history`, in which a database records what was done to it.
///
/// All reads work on a read-only connection.
package enum HistoryTable {
    /// The table's name.
    package static let name = "cipherstore_history"

    /// The state in which CipherStore left a file.
    package enum Stamp: Equatable {
        case plaintext, encrypted
    }

    private static let columns = [
        ("id", "INTEGER"), ("event", "TEXT"), ("fromVersion", "TEXT"), ("toVersion", "TEXT"), ("checksum", "TEXT"),
        ("detail", "TEXT"), ("engine", "TEXT"), ("appliedAt", "TEXT"),
    ]

    package static let createSQL =
        "CREATE TABLE cipherstore_history (id INTEGER PRIMARY KEY, event TEXT NOT NULL, fromVersion TEXT, "
        + "toVersion TEXT, checksum TEXT, detail TEXT, engine TEXT, appliedAt TEXT NOT NULL, schema TEXT)"

    // MARK: Reading

    /// Returns whether the database has a history.
    ///
    /// - Throws: ``StoreError`` with the code `migration` if something else has the table's name; that object is
    ///   neither read nor changed.
    package static func exists(_ connection: Connection) throws -> Bool {
        let found = try connection.value(
            Bool.self,
            """
            SELECT type = 'table' AND coalesce(rootpage, 0) <> 0 FROM main.sqlite_master
            WHERE name = \(name) COLLATE NOCASE AND type IN ('table', 'view', 'index')
            """)
        guard let isOrdinaryTable = found else { return false }
        guard isOrdinaryTable, try hasOurColumns(connection) else {
            throw StoreError(
                .migration, path: connection.path,
                "\(name) is not CipherStore's history table: its type or its columns are different",
                advice: "rename \(name) in the database", changed: .nothing)
        }
        return true
    }

    /// Returns whether the table begins with this release's columns; a newer release may have appended other columns.
    private static func hasOurColumns(_ connection: Connection) throws -> Bool {
        let found = try ColumnState.read(table: name, from: connection)
        guard found.count >= columns.count else { return false }
        return zip(found, columns).allSatisfy { column, expected in
            SQLName(column.name) == SQLName(expected.0) && SQLName(column.type) == SQLName(expected.1)
        }
    }

    /// Returns the latest entries, the newest first.
    package static func latestEvents(_ connection: Connection, limit: Int = 100) throws -> [HistoryEntry] {
        guard try exists(connection) else { return [] }
        var entries: [HistoryEntry] = []
        try StoreError.readingOwnTable(name, connection) {
            try connection.forEachRow(
                """
                SELECT id, event, fromVersion, toVersion, checksum, detail, engine, appliedAt
                FROM main.cipherstore_history ORDER BY id DESC LIMIT \(limit)
                """
            ) { row in
                entries.append(
                    HistoryEntry(
                        id: try row.get(at: 0), event: try row.get(at: 1), fromVersion: try row.get(at: 2),
                        toVersion: try row.get(at: 3), checksum: try row.get(at: 4), detail: try row.get(at: 5),
                        engine: try row.get(at: 6), appliedAt: try row.get(at: 7)))
            }
        }
        return entries
    }

    /// Returns whether CipherStore has recorded a version, so that the app's own record is no longer used.
    ///
    /// The table alone does not prove this: a file can be stamped as plaintext or encrypted before its version is
    /// adopted.
    package static func isAdopted(_ connection: Connection) throws -> Bool {
        try latest("event", of: HistoryEvent.recordingVersion, connection) != nil
    }

    /// Returns the version of the latest event that recorded a version; `nil` if there is no such event, or it has no
    /// version.
    ///
    /// - Throws: ``StoreError`` with the code `recordedVersion` if the text is not a valid version.
    static func latestVersion(_ connection: Connection) throws -> SchemaVersion? {
        guard let text = try latest("toVersion", of: HistoryEvent.recordingVersion, connection) else { return nil }
        guard let version = SchemaVersion(text) else {
            throw StoreError(
                .recordedVersion, path: connection.path,
                "the latest version that \(name) records, \(text), is not a valid version",
                advice: "a version must be a whole number or a dotted version such as 2.0.0", changed: .nothing)
        }
        return version
    }

    /// Returns whether the table exists without any entry, although it is always created with its first entry.
    static func isEmptied(_ connection: Connection) throws -> Bool {
        guard try exists(connection) else { return false }
        return try connection.value(Bool.self, "SELECT NOT EXISTS (SELECT 1 FROM main.cipherstore_history)") ?? false
    }

    /// Returns whether the file is plaintext because CipherStore opened it as it is.
    package static func isStampedPlaintext(_ connection: Connection) throws -> Bool {
        try stamp(connection) == .plaintext
    }

    /// Returns the state in which CipherStore left the file; `nil` if it has neither created nor encrypted the file,
    /// nor opened it in plaintext.
    package static func stamp(_ connection: Connection) throws -> Stamp? {
        if let event = try latest("event", of: HistoryEvent.tellingEncryption, connection) {
            return event == HistoryEvent.openedPlaintext.rawValue ? .plaintext : .encrypted
        }
        // A database that is created in plaintext is stamped before it has a version.
        return try latest("event", of: [.created], connection).map { _ in .encrypted }
    }

    private static func latest(
        _ column: String, of events: [HistoryEvent], _ connection: Connection
    ) throws -> String? {
        guard try exists(connection) else { return nil }
        let marks = events.map { _ in "?" }.joined(separator: ", ")
        let latest = SQL(
            text: "SELECT \(column) FROM main.cipherstore_history WHERE event IN (\(marks)) ORDER BY id DESC LIMIT 1",
            values: events.map(\.rawValue.databaseValue))
        return try StoreError.readingOwnTable(name, connection) { try connection.value(String?.self, latest) } ?? nil
    }

    /// Returns the text of the schema that is stored with the latest event that records a version; `nil` if there is no
    /// such text.
    package static func latestRecord(_ connection: Connection) throws -> (id: Int64, text: String)? {
        guard try exists(connection), try hasSchemaColumn(connection) else { return nil }
        let marks = HistoryEvent.recordingVersion.map { _ in "?" }.joined(separator: ", ")
        var found: (id: Int64, text: String?)?
        try StoreError.readingOwnTable(name, connection) {
            try connection.forEachRow(
                SQL(
                    text: """
                        SELECT id, schema FROM main.cipherstore_history WHERE event IN (\(marks)) ORDER BY id DESC LIMIT 1
                        """,
                    values: HistoryEvent.recordingVersion.map(\.rawValue.databaseValue))
            ) { found = (try $0.get(at: 0), try $0.get(at: 1)) }
        }
        guard let found, let text = found.text else { return nil }
        return (found.id, text)
    }

    /// Returns whether the table has the schema column, which histories of earlier releases lack.
    private static func hasSchemaColumn(_ connection: Connection) throws -> Bool {
        try ColumnState.read(table: name, from: connection).contains { SQLName($0.name) == SQLName("schema") }
    }

    // MARK: Writing

    /// Adds an entry, and creates the table if it does not exist.
    ///
    /// The addition is atomic, and part of the caller's transaction if one is open.
    ///
    /// - Parameter record: The schema as text, for an event that records a version.
    package static func append(
        _ event: HistoryEvent, from: SchemaVersion? = nil, to: SchemaVersion? = nil, checksum: String? = nil,
        detail: String? = nil, record: String? = nil, in connection: Connection
    ) throws {
        try connection.transaction(.immediate) {
            if try !exists(connection) { try connection.execute(SQL(text: createSQL)) }
            if try !hasSchemaColumn(connection) {
                try connection.execute("ALTER TABLE main.cipherstore_history ADD COLUMN schema TEXT")
            }
            let engine = "SQLCipher \(Engine.current.cipherVersion), SQLite \(Engine.current.sqliteVersion)"
            try connection.execute(
                SQL(
                    text: """
                        INSERT INTO main.cipherstore_history
                            (event, fromVersion, toVersion, checksum, detail, engine, appliedAt, schema)
                        VALUES (?, ?, ?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?)
                        """,
                    values: [
                        event.rawValue.databaseValue, (from?.description).databaseValue,
                        (to?.description).databaseValue, checksum.databaseValue, detail.databaseValue,
                        engine.databaseValue, record.databaseValue,
                    ]))
        }
    }
}
