internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

/// SQLite treats a name in double quotes as a string if nothing has this name.
struct DoubleQuotedStringTests {
    @Test(
        "A new column with the name of a string in double quotes in an index of the table is refused",
        arguments: ["CREATE TABLE t(a, b, x)", "CREATE TABLE t(a TEXT, b, x)"])
    func refusesCapture(wanted: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a, b); CREATE UNIQUE INDEX i ON t(b) WHERE a = \"x\"; INSERT INTO t VALUES ('x', 1)")
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(WantedSource(statements: [wanted])) }
        #expect(error?.code == .migration)
        let finding = "the index i contains \"x\" as a string, which would become the name of the new column"
        #expect(error?.detail.contains(finding) == true)
        #expect(try fixture.bytes() == before)
    }
}
