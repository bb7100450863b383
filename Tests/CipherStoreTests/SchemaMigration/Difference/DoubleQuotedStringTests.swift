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

    @Test(
        "A change that gives a name in double quotes in a generated column another meaning is refused",
        .enabled(if: Engine.current.hasGeneratedColumns), arguments: ["UNIQUE", "STORED"], [true, false])
    func refusesOtherValues(option: String, isAdded: Bool) throws {
        let (column, old, new) = ("g AS (a || \"x\") \(option)", Self.use(isAdded), Self.use(!isAdded))
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT, \(column)\(isAdded ? "" : ", x TEXT")); INSERT INTO t(a) VALUES ('v')")
        let before = try fixture.bytes()
        let wanted = "CREATE TABLE t(a TEXT, \(column)\(isAdded ? ", x TEXT" : ""))"
        let error = try storeError { try fixture.launch(WantedSource(statements: [wanted], policy: .allow)) }
        #expect(error?.code == .migration)
        let finding = "AS (a || \"x\") of t contains \"x\" as \(old), which the migration would turn into \(new)"
        #expect(error?.detail.contains(finding) == true)
        #expect(try fixture.bytes() == before)
    }

    @Test("A change that gives a name in double quotes in a CHECK another meaning is named", arguments: [true, false])
    func namesOtherCheck(isAdded: Bool) throws {
        func table(_ hasColumn: Bool) -> String {
            "CREATE TABLE t(a TEXT CHECK (a <> \"x\")\(hasColumn ? ", x TEXT" : ""))"
        }
        func fixture() throws -> MigrationFixture {
            try MigrationFixture(
                .init(isEncrypted: false, journalMode: "DELETE"), "\(table(!isAdded)); INSERT INTO t(a) VALUES ('v')")
        }
        var source = WantedSource(statements: [table(isAdded)], policy: .refuse)
        let finding =
            "CHECK (a <> \"x\") of t contains \"x\" as \(Self.use(isAdded)), which the migration would turn into "
            + Self.use(!isAdded)
        let refused = try fixture()
        #expect(try storeError { try refused.launch(source) }?.detail.contains(finding) == true)

        source.policy = .allow
        let allowed = try fixture()
        #expect(try allowed.launch(source).findings.map(\.message).contains(finding))
        #expect(try allowed.launch(source).applied.isEmpty)
    }

    @Test("Rows that violate a CHECK because a string in double quotes replaces a dropped column prevent the migration")
    func enforcesOtherCheck() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT CHECK (a <> \"x\"), x TEXT); INSERT INTO t(a) VALUES ('x')")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT CHECK (a <> \"x\"))"], policy: .allow)
        let error = try storeError { try fixture.launch(source) }
        #expect(error?.detail.contains("1 row of t would violate CHECK (a <> \"x\")") == true)
    }

    static let otherNames =
        [
            ("b TEXT CHECK (CAST(a AS \"text\") <> '')", "text"), ("b TEXT CHECK (\"upper\"(a) <> '')", "upper"),
            ("b TEXT CHECK (a <> '' COLLATE \"nocase\")", "nocase"),
        ] + (Engine.current.hasGeneratedColumns ? [("g AS (\"upper\"(a))", "upper")] : [])

    @Test("A new column may have the name of a function, a type or a collation in double quotes", arguments: otherNames)
    func acceptsOtherNames(column: String, added: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT, \(column)); CREATE INDEX i ON t(\"upper\"(a)); INSERT INTO t(a) VALUES ('v')")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT, \(column), \(added) TEXT)"], policy: .refuse)
        #expect(try fixture.launch(source).titles == ["addColumn t.\(added)"])
        #expect(try fixture.rows("SELECT a FROM t") == ["\(Value.text("v"))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    private static func use(_ isString: Bool) -> String { isString ? "a string" : "the name of a column" }

    @Test("A new column is added if the schema writes the string of this name in single quotes")
    func acceptsSingleQuotes() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT CHECK (a <> \"x\")); INSERT INTO t VALUES ('v')")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT CHECK (a <> 'x'), x TEXT)"], policy: .refuse)
        #expect(try fixture.launch(source).titles == ["rebuildTable t"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }
}
