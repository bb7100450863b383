internal import CipherSQLText
internal import CipherSchemaMigration
import Testing

struct SchemaTextTests {
    static let alike = [
        ("a TEXT NOT NULL", "\"A\"  text /* c */ not null -- d"), ("CHECK (x>=1)", "check(\n[x] > = 1)"),
        ("DEFAULT 'It''s'", "default 'It''s'"), ("x'00FF'", "x'00FF'"), ("1.5e3", "1.5E3"),
    ]

    @Test("The normalized text of a schema does not depend on formatting", arguments: alike)
    func ignoresFormat(left: String, right: String) {
        #expect(SQLTokens.normalized(left) == SQLTokens.normalized(right))
    }

    static let different = [
        ("DEFAULT 'a'", "DEFAULT 'A'"), ("a b", "ab"), ("DEFAULT true", "DEFAULT \"true\""), ("'--'", "''"),
        ("\u{e9}", "e\u{301}"),
    ]

    @Test("The normalized text of a schema differs if SQLite would see a difference", arguments: different)
    func seesDifference(left: String, right: String) {
        #expect(SQLTokens.normalized(left) != SQLTokens.normalized(right))
    }

    @Test("The text of a table is split into columns, constraints and options")
    func splits() throws {
        let text = try #require(
            TableText(
                """
                CREATE TABLE "a(b" ("x,y" TEXT DEFAULT '),(' CHECK ("x,y" IN (1, 2)), [z)] DECIMAL(10, 2), 'q' -- last
                , CONSTRAINT k PRIMARY KEY (q, "x,y"), FOREIGN KEY (q) REFERENCES b(c)) WITHOUT ROWID, STRICT
                """))
        #expect(text.columns.map(\.column) == ["x,y", "z)", "q"])
        #expect(text.constraints.count == 2)
        #expect(text.hasOption("without", "rowid"))
        #expect(text.hasOption("strict"))
        #expect(text.column(SQLName("Z)"))?.text == "[z)] DECIMAL(10, 2)")
    }

    static let same = [
        ("a(x INT, y TEXT)", "a(y text, X int)"), ("a(x UNIQUE)", "a(x, UNIQUE (x))"),
        ("a(x INTEGER PRIMARY KEY)", "a(x INTEGER, PRIMARY KEY (x))"),
        ("a(x NOT NULL DEFAULT 1)", "a(x DEFAULT (1) NOT NULL)"),
        ("a(x REFERENCES b(y))", "a(x, FOREIGN KEY (x) REFERENCES B(Y))"),
        ("a(x CHECK (x > 1))", "a(x, CONSTRAINT c CHECK (x>1))"), ("a(x COLLATE BINARY)", "a(x)"),
    ]

    @Test("Two schemas have the same shape if SQLite sees no difference", arguments: same)
    func seesSame(left: String, right: String) throws {
        #expect(try shape(left).isSame(as: shape(right)))
    }

    static let others = [
        ("a(x INT)", "a(x INTEGER)"), ("a(x)", "a(x, y)"), ("a(x)", "a(x UNIQUE)"), ("a(x)", "a(x NOT NULL)"),
        ("a(x DEFAULT 'a')", "a(x DEFAULT 'A')"), ("a(x)", "a(x COLLATE NOCASE)"), ("a(x)", "a(x CHECK (x > 1))"),
        ("a(x CHECK (x > 1))", "a(x CHECK (x > 2))"), ("a(x)", "a(x REFERENCES b(y))"),
        ("a(x REFERENCES b(y))", "a(x REFERENCES b(y) ON DELETE CASCADE)"),
        ("a(x REFERENCES b(y))", "a(x REFERENCES b(y) DEFERRABLE INITIALLY DEFERRED)"),
        ("a(x UNIQUE)", "a(x UNIQUE ON CONFLICT REPLACE)"),
        ("a(x INTEGER PRIMARY KEY)", "a(x INTEGER PRIMARY KEY AUTOINCREMENT)"),
        ("a(x INTEGER PRIMARY KEY)", "a(x INTEGER PRIMARY KEY DESC)"),
        ("a(x TEXT PRIMARY KEY)", "a(x TEXT PRIMARY KEY) WITHOUT ROWID"),
        ("a(x, y, UNIQUE (x, y))", "a(x, y, UNIQUE (y, x))"),
    ]

    @Test("Two schemas have different shapes if SQLite sees a difference", arguments: others)
    func seesOthers(left: String, right: String) throws {
        #expect(try !shape(left).isSame(as: shape(right)))
    }

    private func shape(_ sql: String) throws -> TableShape {
        var wanted = try WantedSchema()
        try wanted.add("CREATE TABLE \(sql)", at: "test")
        return try #require(wanted.tables.first)
    }
}
