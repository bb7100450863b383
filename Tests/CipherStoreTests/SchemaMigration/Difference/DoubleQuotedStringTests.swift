internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

/// SQLite treats a name in double quotes as a string if nothing has this name.
struct DoubleQuotedStringTests {
    static let changes = [
        ("CREATE TABLE t(a TEXT DEFAULT \"new\")", "CREATE TABLE t(a TEXT DEFAULT \"New\")"),
        ("CREATE TABLE t(a TEXT CHECK (a <> \"no\"))", "CREATE TABLE t(a TEXT CHECK (a <> \"No\"))"),
        (
            "CREATE TABLE t(a TEXT); CREATE TRIGGER i AFTER INSERT ON t BEGIN UPDATE t SET a = \"x\"; END",
            "CREATE TRIGGER i AFTER INSERT ON t BEGIN UPDATE t SET a = \"X\"; END"
        ),
        (
            "CREATE TABLE t(a TEXT); CREATE INDEX i ON t(a) WHERE a <> \"x\"",
            "CREATE INDEX i ON t(a) WHERE a <> \"X\""
        ),
    ]

    @Test("A change to the letters of a string in double quotes is applied", arguments: changes)
    func appliesChange(texts: (present: String, wanted: String)) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), texts.present)
        let isTable = texts.wanted.hasPrefix("CREATE TABLE")
        let source = WantedSource(statements: isTable ? [texts.wanted] : ["CREATE TABLE t(a TEXT)", texts.wanted])
        #expect(try !fixture.launch(source).titles.isEmpty)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let same = [
        ("CREATE TABLE t(Name TEXT CHECK (Name <> 'x'))", "CREATE TABLE t(\"name\" TEXT CHECK (\"name\" <> \"x\"))"),
        ("CREATE TABLE t(a TEXT DEFAULT 'x')", "CREATE TABLE t(a TEXT DEFAULT \"x\")"),
        ("CREATE TABLE t(a TEXT DEFAULT NULL)", "CREATE TABLE t(a TEXT DEFAULT null)"),
        ("CREATE TABLE t(a, CHECK (t.a > 0))", "CREATE TABLE t(a, CHECK (\"t\".\"a\" > 0))"),
    ]

    @Test("Names and strings are the same in any quotes that have the same meaning", arguments: same)
    func ignoresQuotes(texts: (present: String, wanted: String)) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), texts.present)
        #expect(try fixture.launch(WantedSource(statements: [texts.wanted])).titles.isEmpty)
    }

    // MARK: New columns

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

    @Test("A CHECK in which a string in double quotes becomes the name of a new column is named as removed")
    func namesLostCheck() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a, CHECK (a <> \"x\"))")
        var source = WantedSource(statements: ["CREATE TABLE t(a, x)"])
        source.inherited = ["t": [.constraints]]
        let report = try fixture.launch(source)
        #expect(report.findings.map(\.message) == ["the migration removes CHECK (a <> \"x\") from t"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }
}
