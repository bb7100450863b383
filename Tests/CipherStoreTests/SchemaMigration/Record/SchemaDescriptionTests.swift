internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct SchemaDescriptionTests {
    private static let schema = """
        CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL DEFAULT 'A,b', body TEXT,
            CHECK (length(body) > 0), UNIQUE (uid, body));
        CREATE INDEX by_uid ON chat(uid) WHERE body IS NOT NULL;
        CREATE VIEW v AS SELECT uid FROM chat;
        CREATE TRIGGER t AFTER INSERT ON chat BEGIN SELECT 1; END;
        CREATE TABLE k(a, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
        """

    private func describe(_ script: String) throws -> SchemaDescription {
        let connection = try Connection(path: "", mode: .create)
        defer { connection.close() }
        try connection.executeScript(text: script)
        return try SchemaDescription(of: connection)
    }

    private func sentences(_ found: String, against expected: String = Self.schema) throws -> [String] {
        try describe(found).differences(from: describe(expected)).map { $0.sentence(unexpected: "not recorded") }
    }

    @Test(
        "The description of a schema does not depend on formatting, quotes or how a column was added")
    func formatting() throws {
        let other = """
            create table "Chat" ( "id" integer primary key autoincrement, -- a comment
              [UID] text not null default 'A,b', body TEXT, check (length ( body )>0), unique(uid,body));
            CREATE TABLE k(a,b,primary key(a,b))without rowid;
            create index by_uid on chat ( UID ) where BODY is not null;
            create view V as select uid from chat;
            create trigger t after insert on chat begin select 1; end;
            """
        #expect(try sentences(other).isEmpty)
        let added = "CREATE TABLE a(x, CHECK (x > 0)); ALTER TABLE a ADD COLUMN y TEXT DEFAULT 'Q'"
        #expect(try sentences(added, against: "CREATE TABLE a(x, y TEXT DEFAULT \"Q\", CHECK (x > 0))").isEmpty)
    }

    static let drifts: [(String, [String])] = [
        ("DROP VIEW v", ["view v is missing"]),
        ("DROP VIEW v; CREATE VIEW v AS SELECT body FROM chat", ["view v differs"]),
        ("CREATE INDEX i ON chat(body)", ["index i is not recorded"]),
        ("CREATE TABLE extra(x)", ["table extra is not recorded"]),
        ("ALTER TABLE chat ADD COLUMN x", ["table chat: column x is not recorded"]),
        ("DROP TRIGGER t", ["trigger t is missing"]),
        ("DROP TABLE k; CREATE TABLE k(a, b, PRIMARY KEY (a, b))", ["table k differs"]),
        (
            "DROP TABLE k; CREATE TABLE k(b, a, PRIMARY KEY (a, b)) WITHOUT ROWID",
            ["table k has its columns in a different order"]
        ),
        (
            "DROP TABLE k; CREATE TABLE k(a INT, c, PRIMARY KEY (a, c)) WITHOUT ROWID",
            [
                "table k: column a is `int` instead of without a type", "table k: column b is missing",
                "table k: column c is not recorded", "table k differs",
            ]
        ),
        ("DROP INDEX by_uid; CREATE INDEX by_uid ON chat(uid)", ["index by_uid differs"]),
    ]

    @Test("The description of a schema reports drift, object by object", arguments: drifts)
    func drift(_ drift: (String, [String])) throws {
        #expect(try sentences(Self.schema + drift.0) == drift.1)
    }

    @Test("The description of a schema omits objects of SQLite, of CipherStore and of virtual tables")
    func leavesOut() throws {
        let script = """
            CREATE TABLE a(x INTEGER PRIMARY KEY AUTOINCREMENT);
            CREATE VIRTUAL TABLE f USING fts4(body); CREATE VIRTUAL TABLE r USING rtree(id, a, b);
            CREATE TABLE f_log(x); CREATE TABLE cipherstore_mine(x); CREATE INDEX j ON cipherstore_mine(x);
            """
        #expect(try describe(script).objects.map(\.name) == ["a", "f", "r", "f_log"])
    }

    @Test("The description of a schema is the same after it is written and read")
    func coding() throws {
        let schema = try describe(Self.schema)
        let record = SchemaRecord(schema: schema, steps: [SchemaStep(version: 3, name: "b", sql: ["SELECT 1"])])
        let read = try SchemaRecord(json: record.json())
        #expect(read.schema == schema)
        #expect(read.steps == record.steps)
        #expect(try read.json() == record.json())
        #expect(throws: DecodingError.self) { try SchemaRecord(json: "{}") }
    }
}
