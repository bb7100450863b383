// An app that declared its tables in a property list, and kept a copy of the last list beside the database. The list is
// used unchanged, and the app says where it kept the version of a legacy file.

import CipherStore
import Foundation
import StoreSupport
import Support

let example = try Example("declared tables")
try example.legacy(
    "local.db",
    """
    CREATE TABLE chat (id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, body TEXT);
    INSERT INTO chat VALUES (3, 'ana', 'see you at eight'), (4294967296, 'bo', NULL);
    CREATE TABLE tableThatOnlyThisUserHas (value BLOB);
    INSERT INTO tableThatOnlyThisUserHas VALUES (x'00ff');
    """)

var configuration = try Configuration(contentsOf: example.config("ChatStore.plist"))
// The app encrypted the copy with its own cipher, so the app decrypts it, in this closure.
configuration.recordedVersion = .custom { _ in 23 }
let store = try await EncryptedStore.open(configuration, directory: example.folder, keyProvider: example.keys)
example.tell(store.report)

let ids = try await store.read { try $0.values(Int64.self, "SELECT id FROM chat WHERE threadId IS NULL ORDER BY id") }
try example.expect(ids == [3, 4_294_967_296], "primary keys are carried over: \(ids)")
let bytes = try await store.read { try $0.value([UInt8].self, "SELECT value FROM tableThatOnlyThisUserHas") }
try example.expect(bytes == [0, 255], "an undeclared table stays")
try example.expect(store.report.isUpdate, "the app asks whether this launch was an update")
await store.close()
try example.expect("see you at eight", readable: false, in: "local.db")
try example.end()
