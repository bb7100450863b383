import CipherTestSupport
import Foundation
import Testing

/// Recovery with the command-line tool.
@Suite struct RecoverCommandTests {
    @Test("A damaged database is recovered, reported as a table and as JSON, and left unchanged")
    func recover() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true)
        var data = try Data(contentsOf: URL(filePath: fixture.database))
        for page in 2..<5 { data[page * 4096 + 100] ^= 1 }
        try data.write(to: URL(filePath: fixture.database))
        let before = try fixture.snapshot()
        let output = fixture.folder.path("new.db")
        let made = try fixture.run("recover", fixture.database, "--output", output, "--key-file", fixture.key, "--json")
        #expect(made.status == 0, "\(made.errors)")
        let report = try made.object()
        #expect(report["complete"] as? Bool == false)
        let tables = try #require(report["tables"] as? [[String: Any]])
        #expect(
            tables.contains {
                $0["name"] as? String == "note" && $0["rows"] is Int && $0["lostPages"] is [Int]
                    && $0["notes"] is [String]
            })
        #expect(try fixture.run("verify", output, "--key-file", fixture.key).status == 0)
        let again = try fixture.run("recover", fixture.database, "--output", output, "--key-file", fixture.key)
        #expect(again.status == 73)
        try FileManager.default.removeItem(atPath: output)
        #expect(try fixture.snapshot() == before)
        let told = try fixture.run("recover", fixture.database, "--output", output, "--key-file", fixture.key)
        #expect(
            told.status == 0 && told.output.contains("lost pages") && told.output.contains("Rows may be missing"),
            "\(told.output)")
        try FileManager.default.removeItem(atPath: output)
        let wrong = try fixture.run("recover", fixture.database, "--output", output, "--key-file", fixture.otherKey)
        #expect(wrong.status == 65)
        #expect(try fixture.run("recover", fixture.database, "--output", output).status == 64)
        #expect(try fixture.snapshot() == before)
    }

    @Test("A damaged database is recovered in place, and kept with its log")
    func inPlace() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true)
        var data = try Data(contentsOf: URL(filePath: fixture.database))
        for page in 2..<5 { data[page * 4096 + 100] ^= 1 }
        try data.write(to: URL(filePath: fixture.database))
        let before = try fixture.snapshot()
        for arguments in [
            ["--in-place", "--output", fixture.folder.path("new.db")], [], ["--in-place", "--new-key-env", "K"],
        ] {
            #expect(
                try fixture.run(["recover", fixture.database, "--key-file", fixture.key] + arguments).status == 64)
        }
        let wrong = try fixture.run("recover", fixture.database, "--in-place", "--key-file", fixture.otherKey)
        #expect(wrong.status == 65)
        let folder = try fixture.run("recover", fixture.folder.path(""), "--in-place", "--key-file", fixture.key)
        #expect(folder.status == 65 && folder.errors.contains("is a directory"), "\(folder.errors)")
        #expect(try fixture.snapshot() == before)
        let made = try fixture.run("recover", fixture.database, "--in-place", "--key-file", fixture.key, "--json")
        #expect(made.status == 0, "\(made.errors)")
        let report = try made.object()
        #expect(report["source"] as? String == fixture.database + "-damaged")
        #expect(report["path"] as? String == fixture.database)
        #expect(report["tables"] is [[String: Any]] && report["complete"] as? Bool == false)
        #expect(try Data(contentsOf: URL(filePath: fixture.database + "-damaged")) == data)
        #expect(try fixture.run("verify", fixture.database, "--key-file", fixture.key).status == 0)
        let after = try fixture.snapshot()
        let again = try fixture.run("recover", fixture.database, "--in-place", "--key-file", fixture.key)
        #expect(again.status == 0 && again.output.contains("nothing is damaged"), "\(again.output)")
        #expect(try fixture.snapshot() == after)
    }

    @Test("encrypt --on-damage recover reports what is lost, also as JSON")
    func encrypting() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: false)
        var data = try Data(contentsOf: URL(filePath: fixture.database))
        for page in 2..<5 {
            data.replaceSubrange(page * 4096..<(page + 1) * 4096, with: Data(repeating: 255, count: 4096))
        }
        try data.write(to: URL(filePath: fixture.database))
        let before = try fixture.snapshot()
        #expect(try fixture.run("encrypt", fixture.database, "--key-file", fixture.key).status == 65)
        #expect(try fixture.snapshot() == before)
        let made = try fixture.run(
            "encrypt", fixture.database, "--key-file", fixture.key, "--on-damage", "recover", "--json")
        #expect(made.status == 0, "\(made.errors)")
        #expect(made.errors.contains("in plaintext"))
        let report = try made.object()
        #expect(report["outcome"] as? String == "recovered")
        let recovery = try #require(report["recovery"] as? [String: Any])
        #expect(recovery["complete"] as? Bool == false && recovery["tables"] is [[String: Any]])
        // The kept file belongs to the database, like a backup, and the run on the folder reports it.
        let fleet = try fixture.run("encrypt", fixture.folder.path(""), "--recursive", "--key-file", fixture.key)
        #expect(fleet.errors.contains("app.db-damaged") && fleet.errors.contains("was not changed"), "\(fleet.errors)")
        #expect(try Data(contentsOf: URL(filePath: fixture.database + "-damaged")) == data)
    }

    @Test("A configuration supplies the schema of a database that has lost its own")
    func configuration() throws {
        let fixture = try ToolFixture()
        try FileManager.default.createDirectory(
            atPath: fixture.folder.path("steps"), withIntermediateDirectories: false)
        try fixture.folder.write(
            #"["CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT NOT NULL)"]"#, to: "steps/sql_default.plist")
        try fixture.folder.write(
            #"["ALTER TABLE note ADD COLUMN sent REAL", "CREATE INDEX note_sent ON note(sent)"]"#,
            to: "steps/sql_update_2.plist")
        try fixture.folder.write(
            #"{"dbName": "app.db", "dbVersion": 2, "updates": {"directory": "steps"}}"#, to: "app.json")
        try LegacyFile.write(
            fixture.database,
            script: """
                CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT NOT NULL, sent REAL);
                CREATE INDEX note_sent ON note(sent);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                    INSERT INTO note SELECT i * 3, 'note ' || i || hex(zeroblob(40)), i / 4.0 FROM n;
                """)
        var data = try Data(contentsOf: URL(filePath: fixture.database))
        data.replaceSubrange(0..<4096, with: Data(count: 4096))
        try data.write(to: URL(filePath: fixture.database))
        let before = try fixture.snapshot()
        let output = fixture.keys.path("new.db")
        let config = fixture.folder.path("app.json")
        let arguments = ["recover", fixture.database, "--output", output, "--key-file", fixture.key]
        #expect(try fixture.run(arguments + ["--config", config, "--template", config]).status == 64)
        #expect(try fixture.run(arguments + ["--config", fixture.folder.path("none.json")]).status == 66)
        let run = try fixture.run(arguments + ["--config", config, "--json"])
        #expect(run.status == 0, "\(run.errors)")
        let tables = try #require(try run.object()["tables"] as? [[String: Any]])
        #expect(tables.first { $0["name"] as? String == "note" }?["rows"] as? Int == 500, "\(run.output)")
        let rows = try fixture.run(
            "query", output, "--key-file", fixture.key,
            "SELECT count(*), sum(id), sum(sent), min(body) LIKE 'note 1%' FROM note", "--csv")
        #expect(rows.output.contains("500,375750,31312.5,1"), "\(rows.output)")
        #expect(try fixture.snapshot() == before)
    }
}
