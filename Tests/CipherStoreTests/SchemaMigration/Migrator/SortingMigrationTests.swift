internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Migrations that create an index which does not fit in the memory.
struct SortingMigrationTests {
    @Test(
        "A migration sorts the entries of a new index in a file without a name",
        arguments: [
            MigrationFixture.Form(isEncrypted: false, journalMode: "DELETE"),
            MigrationFixture.Form(isEncrypted: true, journalMode: "WAL"),
        ])
    func sortsInFile(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(
            form,
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
            INSERT INTO t SELECT i, (i * 7919 % 60013) || ' ' || hex(zeroblob(200)) FROM n;
            """)
        let largest = Largest()
        let folder = fixture.folder
        let comparisons = Largest()
        let noting = Collation(name: "noting") { left, right in
            let number = comparisons.value + 1
            comparisons.note(number)
            if number % 20_000 == 0 { largest.note(NamelessFiles.largest(in: folder)) }
            return left.elementsEqual(right) ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
        }
        let table = DeclaredTable(
            name: "t",
            columns: [.init(name: "id", definition: "INTEGER PRIMARY KEY"), .init(name: "a", definition: "TEXT")],
            indexes: [.init(name: "i", columns: ["a COLLATE noting"])])
        let configuration = Configuration(
            databaseName: "app.db", version: 25, schema: .tables([table]), collations: [noting])
        let connection = try ConnectionProfile.migrating
            .with(key: form.isEncrypted ? TestKeys.raw() : nil, extensions: configuration.extensions)
            .open(fixture.path)
        defer { connection.close() }
        let report = try SchemaMigrator(configuration: configuration).migrate(connection) { nil }
        #expect(report.applied.contains { $0.object == "i" })
        #if os(Linux)
            // The memory for sorting is as large as the connection's cache.
            #expect(largest.value > 16 << 20)
        #endif
        #expect(try connection.value(Int.self, "PRAGMA temp_store") == 2)
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
    }
}
