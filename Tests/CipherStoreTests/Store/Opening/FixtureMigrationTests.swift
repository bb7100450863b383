internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Databases of every older version of the example app, which the example configuration upgrades to its current
/// version.
struct FixtureMigrationTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let fixtures = ["chat-v22.db", "chat-v23.db", "chat-v23-wal.db", "chat-v24.db", "chat-v25.db"]

    private func configuration() throws -> Configuration {
        try Configuration(contentsOf: Repository.examples.appending(path: "ChatStore.plist"))
    }

    private func place(_ fixture: String, in folder: TemporaryFolder) throws {
        let source = Repository.fixtures.appending(path: fixture).path(percentEncoded: false)
        for ending in ["", "-wal"] where FileManager.default.fileExists(atPath: source + ending) {
            try FileManager.default.copyItem(atPath: source + ending, toPath: folder.path("local.db" + ending))
        }
    }

    private func open(_ configuration: Configuration, in folder: TemporaryFolder) throws -> OpenReport {
        try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).run().report
    }

    private func with<Result>(
        _ folder: TemporaryFolder, key: CipherKey?, _ body: (Connection) throws -> Result
    ) throws -> Result {
        try LegacyFile(copying: folder.path("local.db")).read(key: key, body)
    }

    /// Returns the columns of every declared table, regardless of its exact SQL.
    private func columns(_ connection: Connection) throws -> [String] {
        var lines: [String] = []
        for table in ["chat", "contact", "draft"] {
            try connection.forEachRow(SQL(text: "PRAGMA table_info(\(table))")) { row in
                lines.append("\(table): " + (0..<row.count).map { "\(row.value(at: $0))" }.joined(separator: ", "))
            }
        }
        return lines
    }

    /// Returns every row of a table, with the columns that the table had before.
    private func rows(_ table: String, _ columns: [String], _ connection: Connection) throws -> [[Value]] {
        var rows: [[Value]] = []
        let list = (["rowid"] + columns).joined(separator: ", ")
        try connection.forEachRow(SQL(text: "SELECT \(list) FROM \(table) ORDER BY rowid")) { row in
            rows.append((0..<row.count).map { row.value(at: $0) })
        }
        return rows
    }

    @Test(
        "A database of every older version ends with a fresh install's schema and all its rows", arguments: fixtures)
    func migrate(fixture: String) throws {
        try place(fixture, in: folder)
        var before: [String: (columns: [String], rows: [[Value]])] = [:]
        let version = try with(folder, key: nil) { connection in
            for table in ["chat", "contact", "attachment_cache", "sqlite_sequence"] {
                var names: [String] = []
                try connection.forEachRow(SQL(text: "PRAGMA table_info(\(table))")) { names.append(try $0.get(at: 1)) }
                before[table] = (names, try rows(table, names, connection))
            }
            return try connection.value(Int.self, "PRAGMA user_version") ?? 0
        }
        #expect(before["chat"]?.rows.count == 18)
        var configuration = try configuration()
        if version >= 24 {
            configuration.encryption.sinceVersion = 24
            #expect(try storeError { try open(configuration, in: folder) }?.code == .unexpectedPlaintext)
            configuration.encryption.sinceVersion = nil
        }

        let report = try open(configuration, in: folder)
        #expect(report.outcome == .encrypted)
        #expect(report.isUpdate)
        let other = try TemporaryFolder()
        #expect(try open(configuration, in: other).outcome == .created)
        let wanted = try with(other, key: TestKeys.raw(), columns)
        try with(folder, key: TestKeys.raw()) { connection in
            #expect(try columns(connection) == wanted)
            #expect(try connection.value(Int.self, "PRAGMA user_version") == 26)
            #expect(try connection.values(String.self, "PRAGMA integrity_check") == ["ok"])
            for (table, old) in before {
                let kept = try rows(table, old.columns, connection)
                // New tables have their own sequences.
                #expect(table == "sqlite_sequence" ? kept.starts(with: old.rows) : kept == old.rows)
            }
        }
        #expect(try open(configuration, in: folder).outcome == .opened)
        let journal = try with(folder, key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA journal_mode") }
        #expect(journal == (fixture.contains("wal") ? "wal" : "delete"))
    }
}
