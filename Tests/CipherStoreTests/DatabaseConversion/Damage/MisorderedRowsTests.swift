internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// WITHOUT ROWID tables whose rows SQLite does not find by their keys.
struct MisorderedRowsTests {
    /// Rows of a WITHOUT ROWID table whose keys are repeated or out of order.
    static let keys = [
        (
            "CREATE TABLE w(k TEXT, n, v, PRIMARY KEY(k, n)) WITHOUT ROWID",
            "CREATE TABLE w(k TEXT PRIMARY KEY, n, v) WITHOUT ROWID"
        ),
        (
            "CREATE TABLE w(k TEXT, n, v, PRIMARY KEY(k DESC)) WITHOUT ROWID",
            "CREATE TABLE w(k TEXT PRIMARY KEY, n, v) WITHOUT ROWID"
        ),
    ]

    private static func misordered(_ schema: String, _ changed: String) throws -> LegacyFile {
        try LegacyFile {
            try $0.executeScript(text: schema + "; INSERT INTO w VALUES ('a', 1, 2), ('b', 2, 3), ('c', 1, 4)")
            if schema.contains("n)") { try $0.execute("INSERT INTO w VALUES ('b', 5, 6)") }
            try $0.editSchema("UPDATE sqlite_master SET sql = '\(changed)' WHERE name = 'w'")
        }
    }

    // An engine that does not check the order finds other rows in the copy of misordered ones, and reports a failed proof.
    @Test(
        "A WITHOUT ROWID table with repeated or misordered keys is refused or recovered",
        arguments: Engine.current.checksKeyOrder ? keys : Array(keys.prefix(1)), ProofReader.allCases)
    func misorderedKeys(schemas: (String, String), proof: ProofReader) throws {
        for onDamage in [OnDamage.refuse, .rebuildIndexes] {
            let file = try Self.misordered(schemas.0, schemas.1)
            let before = try file.digest()
            let error = try #require(try storeError { try file.upgrade(onDamage, proof).run() })
            #expect(error.code == .corrupt)
            let message =
                Engine.current.checksKeyOrder
                ? "row not in PRIMARY KEY order for w" : "rows of table w are out of order or have the same key"
            #expect(error.detail.contains(message), "\(error.detail)")
            #expect(try file.digest() == before)
        }
        let file = try Self.misordered(schemas.0, schemas.1)
        #expect(try file.upgrade(.recover, proof).run().outcome == .recovered)
    }

    @Test(
        "A table in which two rows have the same rowid is refused under its own name",
        arguments: [
            "CREATE TABLE t(a)", "CREATE TABLE t(a, b GENERATED ALWAYS AS (a || 'x'))", "CREATE TABLE t(a UNIQUE)",
        ])
    func repeatedRowid(schema: String) throws {
        guard !schema.contains("GENERATED") || Engine.current.sqliteVersionNumber >= 3_031_000 else { return }
        let file = try LegacyFile {
            try $0.executeScript(text: schema + "; INSERT INTO t VALUES ('first'), ('second')")
        }
        var data = try Data(contentsOf: URL(filePath: file.path))
        // The length of the record, the rowid, and the record.
        let row = Data([8, 2, 2, 25] + "second".utf8)
        let place = try #require(data.firstRange(of: row))
        data[place.lowerBound + 1] = 1
        try data.write(to: URL(filePath: file.path))
        let before = try file.digest()
        let error = try #require(try storeError { try file.upgrade(.refuse, .records).run() })
        #expect(error.code == .corrupt)
        let texts = [error.description, error.underlying?.message ?? "", error.underlying?.sql ?? ""]
        #expect(!texts.contains { $0.contains("cipherstore_") }, "\(texts)")
        #expect(try file.digest() == before)
    }
}
