// An app that keeps a version for each table, and renamed a table to tableOld when it rebuilt the table. The app was
// killed during such a rebuild.

import CipherStore
import Foundation
import StoreSupport
import Support

let example = try Example("a version for each table")
try example.legacy(
    "im.db",
    """
    CREATE TABLE tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE);
    INSERT INTO tableVersion(name, version) VALUES ('chat', 1.2), ('contact', 1.9);
    CREATE TABLE tableOld(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, msg TEXT, sentAt INTEGER);
    INSERT INTO tableOld VALUES (5, 'ana', 'on my way', 1), (9, 'bo', NULL, 2);
    CREATE TABLE contact(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT);
    INSERT INTO contact VALUES (3, 'ana'), (8, 'bo');
    """)

let configuration = try Configuration(contentsOf: example.config("TableVersions/MessageStore.json"))
let store = try await EncryptedStore.open(configuration, directory: example.folder, keyProvider: example.keys)
example.tell(store.report)

let rows = try await store.read {
    try $0.values(String.self, "SELECT id || ' ' || uid || ' ' || ifnull(body, '-') FROM chat")
}
try example.expect(rows == ["5 ana on my way", "9 bo -"], "the rows keep their keys; msg is renamed to body: \(rows)")
await store.close()
try example.end()
