// An app that ran numbered property lists. The store reads the same files, and the app's record of the next update to
// run.

import CipherStore
import Foundation
import StoreSupport
import Support

let example = try Example("numbered steps")
// The app's database as of update 2. Its record names the next update.
try example.legacy(
    "user.db",
    """
    CREATE TABLE db_version (db_version_num INTEGER);
    INSERT INTO db_version VALUES (3);
    CREATE TABLE user_info (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL);
    ALTER TABLE user_info ADD COLUMN age INTEGER;
    INSERT INTO user_info VALUES (4, 'Ana', 41), (11, 'Bo', NULL);
    """)

let configuration = try Configuration(contentsOf: example.config("NumberedSteps/NumberedSteps.plist"))
let store = try await EncryptedStore.open(configuration, directory: example.folder, keyProvider: example.keys)
example.tell(store.report)

let names = try await store.read {
    try $0.values(String.self, "SELECT name FROM user_info WHERE sex IS NULL ORDER BY id")
}
try example.expect(names == ["Ana", "Bo"], "the users: \(names)")
await store.close()
try example.expect("Ana", readable: false, in: "user.db")
try example.end()
