// An app on SQLite's C interface moves to a store. Its file, version number and schema stay the same.

import AppSQLite
import CipherStore
import Foundation
import StoreSupport
import Support

let example = try Example("an app on the raw C interface")
// The database that the app has written so far.
try example.legacy(
    "notes.db",
    """
    CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT);
    INSERT INTO note VALUES (7, 'buy bread'), (9, 'call Ana');
    PRAGMA user_version = 3;
    """)
try example.expect("buy bread", readable: true, in: "notes.db")

// The app called sqlite3_open, sqlite3_prepare_v2, sqlite3_step, sqlite3_column_text and sqlite3_finalize. Its next
// version opens a store. It still creates its tables itself, so it specifies no schema source.
struct Note: Codable, Sendable { var id: Int; var body: String }

let configuration = Configuration(databaseName: "notes.db", version: 4)
let store = try await EncryptedStore.open(configuration, directory: example.folder, keyProvider: example.keys)
example.tell(store.report)

try await store.write { db in
    if store.report.isUpdate { try db.execute("CREATE TABLE tag(name TEXT PRIMARY KEY)") }
    try db.execute("INSERT INTO note(body) VALUES (\("it's bound, never pasted"))")
}
let notes = try await store.read { db in try db.rows(Note.self, "SELECT id, body FROM note ORDER BY id") }
await store.close()

try example.expect(notes.map(\.id) == [7, 9, 10], "the notes: \(notes)")
try example.expect("buy bread", readable: false, in: "notes.db")
try example.end()
