// An app uses this library and another wrapper in one file. If both have a type with the same name, the module name
// distinguishes them. No module of this library contains a type with the module's name, which would hide the other
// types.

import CipherStore
import Foundation
import GRDBStandIn
import StoreSupport
import Support

let example = try Example("an app that uses CipherStore and another wrapper in one source file")

// The other wrapper's types.
let theirs = (
    GRDBStandIn.Configuration(), GRDBStandIn.Row(), GRDBStandIn.SQL(), GRDBStandIn.DatabaseError(),
    GRDBStandIn.Connection(), GRDBStandIn.Value(), GRDBStandIn.Collation(), GRDBStandIn.Statement(), DatabasePool(),
    DatabaseQueue(), DatabaseMigrator(), Table(), Column()
)
_ = theirs

// The types of this library.
let tables = [DeclaredTable(name: "note", columns: [.init(name: "body", definition: "TEXT NOT NULL")])]
var configuration = CipherStore.Configuration(databaseName: "app.db", version: 1, schema: .tables(tables))
configuration.collations = [
    CipherStore.Collation(name: "bytes") { left, right in
        left.elementsEqual(right) ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
    }
]
let store = try await EncryptedStore.open(configuration, directory: example.folder, keyProvider: example.keys)
let add: CipherStore.SQL = "INSERT INTO note VALUES (\("Ana"))"
try await store.write { (db: CipherStore.Connection) in try db.execute(add) }
let found: [CipherStore.Value] = try await store.read { db in try db.values("SELECT body FROM note") }
try example.expect(found == [.text("Ana")], "the row")
do {
    try await store.write { db in try db.execute("INSERT INTO note VALUES (NULL)") }
    throw Example.Failure("a NULL was inserted into a NOT NULL column")
} catch let error as CipherStore.DatabaseError where error.isNotNullViolation {
    print("   \(error.message)")
}
await store.close()
example.tell(store.report)
try example.end()
