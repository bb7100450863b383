internal import CipherHistory
internal import CipherSQLText
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct NormalizedSQLTests {
    static let alike: [(String, String)] = [
        ("CREATE TABLE t(a  TEXT,\n\tb)", "create table T ( A text , B )"),
        ("SELECT a -- why\n FROM t", "SELECT a/* how */FROM t"),
        ("SELECT a FROM t /* unfinished", "SELECT a FROM t"),
        ("SELECT \"a\", `b`, [C] FROM \"T\"", "select A, B, c from t"),
        ("SELECT X'0aFf', 1E5, 0xAB, .5", "select x'0AfF',1e5,0XaB,.5"),
        ("a TEXT DEFAULT \"Yes\"", "a TEXT DEFAULT 'Yes'"),
        ("a TEXT DEFAULT Yes", "a TEXT DEFAULT 'Yes'"),
        ("a TEXT DEFAULT (\"Yes\" || \"No\")", "a TEXT DEFAULT ('Yes' || 'No')"),
        ("a DEFAULT null NOT NULL", "a default NULL not null"),
        ("a DEFAULT CURRENT_TIMESTAMP", "a DEFAULT current_timestamp"),
        ("a DEFAULT - 5 b", "a DEFAULT -5 B"),
        ("a REFERENCES t ON DELETE SET DEFAULT MATCH full", "a REFERENCES t ON DELETE SET DEFAULT match FULL"),
        ("INSERT INTO t DEFAULT VALUES", "INSERT INTO t DEFAULT values"),
        ("a->>'$.x'", "a ->> '$.x'"),
    ]

    @Test("The normal form of SQL is the same for texts that SQLite reads alike", arguments: alike)
    func isOne(_ pair: (String, String)) {
        #expect(NormalizedSQL(pair.0).text == NormalizedSQL(pair.1).text)
    }

    static let different: [(String, String)] = [
        ("SELECT 'a'", "SELECT 'A'"),
        ("SELECT 'a  b'", "SELECT 'a b'"),
        ("SELECT 'a--b'", "SELECT 'a'"),
        ("SELECT '/*x*/'", "SELECT ''"),
        ("SELECT 'it''s'", "SELECT 'it' 's'"),
        ("a TEXT DEFAULT Yes", "a TEXT DEFAULT yes"),
        ("a TEXT DEFAULT \"Yes\"", "a TEXT DEFAULT \"yes\""),
        ("a DEFAULT 'null'", "a DEFAULT null"),
        ("a \"primary\" key", "a primary key"),
        ("SELECT \"current_date\"", "SELECT current_date"),
        ("SELECT \"a b\"", "SELECT a b"),
        ("SELECT ab", "SELECT a b"),
        ("SELECT 1 e5", "SELECT 1e5"),
        ("a - b", "a -b -- c\n - b"),
        ("SELECT x'00'", "SELECT x '00'"),
        ("SELECT \u{e9}", "SELECT e\u{301}"),
        ("SELECT Ä", "SELECT ä"),
    ]

    @Test("The normal form of SQL differs for texts that mean something else", arguments: different)
    func isAnother(_ pair: (String, String)) {
        #expect(!NormalizedSQL(pair.0).text.utf8.elementsEqual(NormalizedSQL(pair.1).text.utf8))
    }

    @Test("The normal form of a normal form is itself", arguments: alike)
    func isStable(_ pair: (String, String)) {
        let once = NormalizedSQL(pair.0).text
        #expect(NormalizedSQL(once).text == once)
    }

    @Test("The normal form of SQL identifies a step by its effect, whatever its formatting")
    func stepChecksums() {
        let step = SchemaStep(version: 2, name: "a", sql: ["ALTER TABLE t ADD COLUMN a TEXT", "SELECT 1"])
        let same = SchemaStep(version: 2, name: "a", sql: ["alter table T\n add column a text -- more", "SELECT 1"])
        #expect(step == same)
        #expect(step != SchemaStep(version: 2, name: "a", sql: ["ALTER TABLE t ADD COLUMN a TEXT SELECT 1"]))
    }
}
