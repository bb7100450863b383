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
}
