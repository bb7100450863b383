// An app keeps its own SQLite wrapper, and encrypts its file before the wrapper opens it.

import AppSQLite
import CipherDatabaseConversion
import Foundation
import Support

/// The app's wrapper, unchanged except for the key.
final class Database {
    private var handle: OpaquePointer?

    init(path: String, key: SecretBytes) throws {
        try check(sqlite3_open(path, &handle))
        // Passes the length without the terminating zero, which would be part of the key.
        try check(key.withUnsafeBytes { sqlite3_key(handle, $0.baseAddress, Int32($0.count)) })
    }

    deinit { sqlite3_close(handle) }

    func text(_ sql: String) throws -> String {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        try check(sqlite3_prepare_v2(handle, sql, -1, &statement, nil))
        guard sqlite3_step(statement) == SQLITE_ROW, let text = sqlite3_column_text(statement, 0) else { return "" }
        return String(cString: text)
    }

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else {
            throw Example.Failure(String(cString: sqlite3_errmsg(handle)))
        }
    }
}

let example = try Example("an app with an SQLite wrapper of its own")
let file = try example.legacy(
    "app.db",
    """
    PRAGMA journal_mode = WAL;
    CREATE TABLE contact(name TEXT);
    INSERT INTO contact VALUES ('Ana'), ('Bo');
    PRAGMA user_version = 12;
    """)

// At every launch, before the wrapper opens the file, this encrypts a plaintext file. It does not change an encrypted
// one.
for _ in 1...2 {
    let report = try await DatabaseConverter.encrypt(file, keyProvider: example.keys)
    print("   \(report.outcome.rawValue), \(report.tables) tables, \(report.rows) rows")
}

let path = file.path(percentEncoded: false)
let database = try Database(path: path, key: try example.keys.key(for: .existing, database: path).text)
try example.expect(try database.text("SELECT group_concat(name) FROM contact") == "Ana,Bo", "the rows")
try example.expect(try database.text("PRAGMA user_version") == "12", "the app's version")
try example.expect(try database.text("PRAGMA journal_mode") == "wal", "the app's journal mode")
try example.expect("Ana", readable: false, in: "app.db")
try example.end()
