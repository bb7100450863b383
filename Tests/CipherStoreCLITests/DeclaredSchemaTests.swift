import CipherTestSupport
import Foundation
import Testing

struct DeclaredSchemaTests {
    private static let legacy = """
        CREATE TABLE message(id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT, day INTEGER, junk BLOB);
        INSERT INTO message VALUES (7, 'one', 20200101, x'00ff'), (4294967296, NULL, NULL, NULL);
        CREATE TABLE tag(ref INTEGER REFERENCES message(id) ON DELETE CASCADE, name TEXT);
        INSERT INTO tag VALUES (7, 'x');
        CREATE VIEW tagged AS SELECT content, name FROM message JOIN tag ON tag.ref = message.id;
        """

    @Test("migrate applies declared renames, type changes and constraints to a legacy database and encrypts it")
    func migrates() throws {
        let fixture = try ToolFixture()
        try fixture.make("app.db", Self.legacy)
        try fixture.folder.write(
            "<plist version=\"1.0\"><dict><key>dbVersion</key><integer>21</integer></dict></plist>", to: "last.plist")
        let configuration = try fixture.keys.write(
            """
            { "dbName": "app.db", "dbVersion": 26, "encryption": { "sinceVersion": 24 },
              "recordedVersion": { "source": "plist", "file": "last.plist", "key": "dbVersion" },
              "dbTables": [
                { "chat": [ { "id": "INTEGER PRIMARY KEY AUTOINCREMENT" }, { "day": "TEXT" },
                            { "body": "TEXT NOT NULL DEFAULT 'none'" }, { "read": "INTEGER" } ] },
                { "tag": [ { "ref": "INTEGER REFERENCES chat(id) ON DELETE CASCADE" }, { "name": "TEXT" } ] } ],
              "tableOptions": {
                "chat": { "renamedFrom": "message", "renamedColumns": { "body": "content" },
                          "indexes": { "chat_day": ["day DESC"] } },
                "tag": { "constraints": ["UNIQUE (ref, name)"] } } }
            """, to: "declared.json")
        let store = ["--config", configuration, "--directory", fixture.folder.path(""), "--key-file", fixture.key]
        let before = try fixture.snapshot()
        let plan = try fixture.run(["plan"] + store)
        #expect(plan.status == 0, "\(plan.errors)")
        #expect(plan.output.contains("-- finding: the migration replaces 1 NULL of chat.body with the default"))
        #expect(plan.output.contains("-- withheld: dropColumn chat.junk (1 value)"))
        #expect(try fixture.snapshot() == before)

        let migrate = try fixture.run(["migrate", "--json"] + store)
        #expect(migrate.status == 0, "\(migrate.errors)")
        func query(_ sql: String) throws -> String {
            try fixture.run(["query", fixture.database, sql, "--csv", "--key-file", fixture.key]).output
        }
        let rows = try query("SELECT id, typeof(day) AS t, body, quote(junk) AS j, read FROM chat ORDER BY id")
        #expect(rows == "id,t,body,j,read\r\n7,text,one,X'00FF',\r\n4294967296,null,none,NULL,\r\n")
        // An engine that renames columns in views also renames the view's column.
        let tagged = try query("SELECT * FROM tagged")
        #expect(tagged.hasSuffix("name\r\none,x\r\n"))
        let verify = try fixture.run(["verify", fixture.database, "--key-file", fixture.key])
        #expect(verify.status == 0, "\(verify.errors)")
        let again = try fixture.run(["migrate", "--json"] + store)
        let migration = try again.object()["migration"] as? [String: Any]
        #expect(migration?["event"] is NSNull)
        #expect(migration?["launch"] as? String == "unchanged")
    }
}
