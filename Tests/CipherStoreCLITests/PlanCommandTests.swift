internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

struct PlanCommandTests {
    private static let legacy = """
        CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT, age INTEGER);
        INSERT INTO t VALUES (1, 'a', 3), (2, 'A', NULL), (3, 'b', -1); PRAGMA user_version = 1
        """

    /// A legacy database in WAL mode, whose log is not yet in the file, and the steps of a configuration beside it.
    private func fixture(_ steps: String, extra: String = "") throws -> (tool: ToolFixture, options: [String]) {
        let tool = try ToolFixture()
        try FileManager.default.createDirectory(atPath: tool.folder.path("steps"), withIntermediateDirectories: false)
        try tool.folder.write(
            #"["CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT, age INTEGER)"]"#, to: "steps/sql_default.plist")
        try tool.folder.write(steps, to: "steps/sql_update_2.plist")
        try tool.folder.write(
            """
            {"dbName": "app.db", "dbVersion": 2, "recordedVersion": {"source": "userVersion"},
             "updates": {"directory": "steps"}\(extra)}
            """, to: "app.json")
        let file = try LegacyFile(named: "app.db", unclosed: true) { connection in
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript(text: Self.legacy)
        }
        for name in try file.folder.names where !name.hasSuffix("-shm") {
            try FileManager.default.copyItem(atPath: file.folder.path(name), toPath: tool.folder.path(name))
        }
        return (tool, ["--config", tool.folder.path("app.json")])
    }

    @Test(
        "plan and encrypt --shadow --config predict what migrate does from the rows, and leave every byte unchanged",
        arguments: [
            (#"["INSERT INTO t (id) VALUES (2)"]"#, 65),
            (#"["UPDATE t SET n = lower(n)", "CREATE UNIQUE INDEX u ON t(n)"]"#, 65),
            (#"["CREATE TABLE c (age INTEGER CHECK (age > 0))", "INSERT INTO c SELECT age FROM t"]"#, 65),
            (#"["UPDATE t SET age = abs(-9223372036854775807 - id)"]"#, 65), (#"["DELETE FROM t WHERE id = 1"]"#, 78),
            (#"["INSERT INTO t (id) VALUES (4)", "CREATE UNIQUE INDEX u ON t(n)"]"#, 0),
        ] as [(String, Int32)])
    func verdict(steps: String, status: Int32) throws {
        let (tool, options) = try fixture(steps)
        let key = ["--key-file", tool.key]
        let before = try tool.snapshot()
        let plan = try tool.run(["plan", "--directory", tool.folder.path("")] + options)
        #expect(plan.status == status, "\(plan.errors)")
        let shadow = try tool.run(["encrypt", tool.database, "--shadow"] + options + key)
        #expect(shadow.status == status, "\(shadow.errors)")
        #expect(try tool.snapshot() == before)
        let migrate = try tool.run(["migrate", "--directory", tool.folder.path("")] + options + key)
        #expect(migrate.status == status, "\(migrate.errors)")
        if status == 78 {
            #expect([plan, shadow, migrate].allSatisfy { $0.errors.contains("deletes 1 of 3 rows from t") })
        }
    }

    @Test("A step that calls an unregistered function is to be run in the app, or corrected")
    func missingFunction() throws {
        let (tool, options) = try fixture(#"["UPDATE t SET n = soundOf(n)"]"#)
        let run = try tool.run(["plan", "--directory", tool.folder.path("")] + options)
        #expect(run.errors.contains("and register the missing one there, or correct the step"), "\(run.errors)")
    }

    @Test("plan and encrypt --shadow --config count the effect on the rows of a step that may lose some")
    func effects() throws {
        let (tool, options) = try fixture(
            #"["DELETE FROM t WHERE id = 1", "UPDATE t SET n = NULL WHERE id = 2"]"#,
            extra: #", "destructiveSteps": ["sql_update_2.plist"]"#)
        let plan = ["plan", "--directory", tool.folder.path("")] + options
        let text = try tool.run(plan).output
        #expect(text.contains("-- t: 3 rows, then 2\n"), "\(text)")
        #expect(text.contains("-- t: 2 rows; n: 0 NULLs, then 1"), "\(text)")
        #expect(text.contains("LOSS: sql_update_2.plist[0] deletes 1 of 3 rows from t"), "\(text)")
        let shadow = try tool.run(
            ["encrypt", tool.database, "--shadow", "--json", "--key-file", tool.key] + options
        ).object()
        #expect(shadow["outcome"] as? String == "shadow")
        let schema = try #require(shadow["schema"] as? [String: Any])
        #expect(schema["rehearsed"] as? Bool == true)
        let operations = try #require(schema["operations"] as? [[String: Any]])
        let effect = try #require((operations[0]["effects"] as? [[String: Any]])?.first)
        #expect(effect["rowsBefore"] as? Int == 3 && effect["rowsAfter"] as? Int == 2)
    }

    @Test("plan and encrypt --shadow --config report a rehearsal that was too large or turned off")
    func limit() throws {
        let (tool, options) = try fixture(
            #"["CREATE TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) SELECT i, 'a text of fifty bytes, so that it comes to 2 MiB .' FROM n"]"#
        )
        let plan = ["plan", "--directory", tool.folder.path("")] + options
        let large = try tool.run(plan + ["--rehearsal-limit", "1"])
        #expect(large.status == 0 && large.output.contains("because it would change more than 1 MiB"))
        #expect(
            try tool.run(plan + ["--json"]).object()["schema"].flatMap { ($0 as? [String: Any])?["rehearsed"] as? Bool }
                == true)
        let none = try tool.run(plan + ["--rehearsal-limit", "0", "--json"]).object()
        #expect((none["schema"] as? [String: Any])?["rehearsed"] as? Bool == false)
        #expect(try tool.run(plan + ["--rehearsal-limit", "x"]).status == 64)
    }

    @Test("plan and encrypt --shadow --config warn about a misspelled name in double quotes that SQLite treats as text")
    func doubleQuotes() throws {
        let (tool, options) = try fixture(
            ##"["UPDATE t SET n = \"nn\"", "UPDATE t SET \"age\" = 4 WHERE n = 'x'", "CREATE TABLE \"u\" (\"a\")"]"##)
        let directory = ["--directory", tool.folder.path("")]
        let plan = try tool.run(["plan"] + directory + options)
        let warnings = plan.output.split(separator: "\n").filter { $0.hasPrefix("-- warning:") }
        #expect(warnings.count == 1, "\(plan.output)")
        #expect(
            warnings.first?.contains(
                "sql_update_2.plist[0] contains a name in double quotes that SQLite treats as text: no such column: nn")
                == true)
        let migrate = try tool.run(["migrate", "--key-file", tool.key] + directory + options)
        #expect(migrate.status == 0 && migrate.errors.contains("no such column: nn"), "\(migrate.errors)")
    }

    @Test("encrypt takes --config only with --shadow, and plan refuses a configuration that names a missing step")
    func usage() throws {
        let (tool, options) = try fixture("[]", extra: #", "destructiveSteps": ["sql_update_3.plist"]"#)
        #expect(try tool.run(["encrypt", tool.database, "--key-file", tool.key] + options).status == 64)
        let plan = try tool.run(["plan", "--directory", tool.folder.path("")] + options)
        #expect(plan.status == 78)
        #expect(plan.errors.contains("destructiveSteps[0]: no step is named"), "\(plan.errors)")
        #expect(plan.errors.contains("the steps are sql_default.plist, sql_update_2.plist"), "\(plan.errors)")
    }
}
