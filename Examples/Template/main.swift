// An app that ships a template database, and copied its user's rows into each new template.

import CipherStore
import Foundation
import StoreSupport
import Support

let example = try Example("a template database")
// A copy of the first template, with one of the user's rows, and with a category that the user has renamed.
try example.legacy(
    "dbLocal.db",
    """
    CREATE TABLE Records (name TEXT, value TEXT);
    INSERT INTO Records VALUES ('DBVersion', '1');
    CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT);
    INSERT INTO note VALUES (5, 'water the plants');
    CREATE TABLE category (code TEXT PRIMARY KEY, name TEXT);
    INSERT INTO category VALUES ('misc', 'Miscellaneous'), ('work', 'Arbeit');
    """)

let configuration = try Configuration(contentsOf: example.config("Template/NoteStore.json"))
let store = try await EncryptedStore.open(configuration, directory: example.folder, keyProvider: example.keys)
example.tell(store.report)

let categories = try await store.read { db in
    try db.values(String.self, "SELECT code || '=' || name FROM category ORDER BY code")
}
try example.expect(
    categories == ["home=At home", "misc=Miscellaneous", "trip=Trips", "work=Arbeit"],
    "the user's rows win, and the template's new rows are added: \(categories)")
let record = try await store.read { try $0.value(String.self, "SELECT value FROM Records WHERE name = 'DBVersion'") }
try example.expect(record == "3", "the app's own record: \(record ?? "none")")
await store.close()
try example.expect("water the plants", readable: false, in: "dbLocal.db")
try example.end()
