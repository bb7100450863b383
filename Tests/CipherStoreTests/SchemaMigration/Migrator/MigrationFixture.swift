internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// A database file in a separate folder, plaintext or encrypted, in one of the journal modes.
struct MigrationFixture {
    /// The form and the journal mode of the file.
    struct Form: Sendable, CustomTestStringConvertible {
        var isEncrypted: Bool
        var journalMode: String
        var testDescription: String { "\(isEncrypted ? "encrypted" : "plaintext"), journal_mode=\(journalMode)" }

        static let all = [true, false].flatMap { isEncrypted in
            ["DELETE", "WAL"].map { Form(isEncrypted: isEncrypted, journalMode: $0) }
        }
    }

    let folder: TemporaryFolder
    let path: String
    let form: Form

    init(_ form: Form = Form(isEncrypted: false, journalMode: "DELETE"), _ script: String = "") throws {
        folder = try TemporaryFolder()
        path = folder.path("app.db")
        self.form = form
        let connection = try open(.create)
        defer { connection.close() }
        _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(form.journalMode)"))
        // Without a page 1, no key could be shown to fit.
        if form.isEncrypted { try connection.execute("PRAGMA user_version = 0") }
        if !script.isEmpty { try connection.executeScript(text: script) }
    }

    func open(_ mode: Connection.Mode = .readWrite, busyTimeout: Duration = .zero) throws -> Connection {
        guard form.isEncrypted else { return try Connection(path: path, mode: mode, busyTimeout: busyTimeout) }
        return try Connection(
            path: path, mode: mode, key: TestKeys.raw(), settings: CipherSettings(), busyTimeout: busyTimeout)
    }

    /// Opens the file, runs `body` and closes the file.
    func with<Result>(_ mode: Connection.Mode = .readWrite, _ body: (Connection) throws -> Result) throws -> Result {
        let connection = try open(mode)
        defer { connection.close() }
        return try body(connection)
    }

    /// Returns the bytes of every file in the folder, by name.
    ///
    /// No connection may be open.
    ///
    /// A read-only connection leaves an empty `-wal` and a `-shm` beside a database in WAL mode; compare only `app.db`
    /// then.
    func bytes() throws -> [String: Data] {
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
        var files: [String: Data] = [:]
        for file in try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil) {
            files[file.lastPathComponent] = try Data(contentsOf: file)
        }
        return files
    }

    /// Returns the schema, the rows and the version as text.
    ///
    /// The text depends only on the content, not on the pages.
    func content() throws -> [String] {
        try with(.readOnly) { connection in
            var lines = ["user_version \(try connection.value(Int.self, "PRAGMA user_version") ?? -1)"]
            var tables: [String] = []
            try connection.forEachRow("SELECT type, name, sql FROM sqlite_master ORDER BY type, name") { row in
                lines.append("\(row.value(at: 0)) \(row.value(at: 1)) \(row.value(at: 2))")
                if row.value(at: 0) == .text("table") { tables.append(try row.get(at: 1)) }
            }
            for table in tables {
                try connection.forEachRow(SQL(text: "SELECT * FROM \(SQL.quoted(identifier: table))")) { row in
                    lines.append("\(table): " + (0..<row.count).map { "\(row.value(at: $0))" }.joined(separator: ", "))
                }
            }
            return lines
        }
    }

    /// Migrates on a separate connection, as one launch does.
    @discardableResult
    func launch(_ configuration: Configuration, recorded: SchemaVersion? = nil) throws -> MigrationReport {
        try with { try SchemaMigrator(configuration: configuration).migrate($0) { recorded } }
    }
}

extension Configuration {
    /// The configuration of an app of system B.
    static func declaring(
        _ tables: KeyValuePairs<String, KeyValuePairs<String, String>>, version: SchemaVersion = 25,
        recordedVersion: RecordedVersion = .userVersion, destructiveChanges: DestructiveChanges = .withhold,
        collations: [Collation] = []
    ) -> Configuration {
        Configuration(
            databaseName: "app.db", version: version, recordedVersion: recordedVersion,
            schema: .tables(
                tables.map { table in
                    DeclaredTable(
                        name: table.key, columns: table.value.map { .init(name: $0.key, definition: $0.value) })
                }),
            destructiveChanges: destructiveChanges, collations: collations)
    }
}

/// Returns the error that `body` throws, which must be a `StoreError`.
func storeError(from body: () throws -> some Any) throws -> StoreError? {
    do {
        _ = try body()
        return nil
    } catch let error as StoreError {
        return error
    }
}
