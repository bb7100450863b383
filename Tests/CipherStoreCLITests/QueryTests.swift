import CipherSQLite
import Foundation
import TestSupport
import Testing

/// The rows of a query in each of its forms, and what a query may not do.
@Suite struct QueryTests {
    private static let sql = """
        SELECT 9007199254740993 AS big, 0.1 AS real, NULL AS absent, '' AS empty, X'00ff' AS bytes, 'a,"b"' AS text, \
        CAST(X'41ff42' AS TEXT) AS broken, 2 AS big
        """

    private func query(_ arguments: String...) throws -> ToolRun {
        let fixture = try ToolFixture()
        try fixture.make()
        let before = try fixture.snapshot()
        let run = try fixture.run(["query", fixture.database] + arguments)
        #expect(try fixture.snapshot() == before)
        return run
    }

    @Test func json() throws {
        let run = try query(Self.sql, "--json")
        #expect(run.status == 0)
        // Foundation would round the integer, so the text is looked at.
        #expect(run.output.contains("\"big\":9007199254740993,"))
        let rows = try #require(try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [[String: Any]])
        let row = try #require(rows.first)
        #expect(row["real"] as? Double == 0.1)
        #expect(row["absent"] is NSNull)
        #expect(row["empty"] as? String == "")
        #expect(row["text"] as? String == "a,\"b\"")
        #expect(row["bytes"] as? [String: String] == ["type": "blob", "base64": "AP8="])
        #expect(row["broken"] as? [String: String] == ["type": "text", "base64": "Qf9C"])
        #expect(row["big_2"] as? Int == 2)
        #expect(try query("SELECT 1 WHERE 0", "--json").output == "[]\n")
    }

    @Test func csv() throws {
        let run = try query("SELECT 1 AS a, NULL AS b, '' AS \"c,d\", 'x\ny \"z\"' AS e, X'0a' AS f", "--csv")
        #expect(run.output == "a,b,\"c,d\",e,f\r\n1,,\"\",\"x\ny \"\"z\"\"\",X'0a'\r\n")
    }

    @Test func table() throws {
        let run = try query("SELECT 7 AS n, '你好' AS text UNION ALL SELECT 123, 'a' || char(27) || '[31m'")
        #expect(
            run.output == """
                n    text
                ---  -----------
                  7  你好
                123  a\\u{1b}[31m

                """)
    }

    @Test func manyRows() throws {
        let run = try query("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT i FROM n")
        #expect(run.output.split(separator: "\n").count == 20_002)
        #expect(run.output.hasSuffix("\n20000\n"))
    }

    /// SQLite before 3.27 does not know VACUUM INTO.
    private static let writingStatements =
        [
            "DELETE FROM note", "INSERT INTO note(body) VALUES ('x')", "CREATE TABLE x(y)", "VACUUM",
            "PRAGMA user_version = 9",
        ] + (Engine.current.sqliteVersionNumber >= 3_027_000 ? ["VACUUM INTO 'copy.db'"] : [])

    @Test(arguments: writingStatements)
    func writing(_ sql: String) throws {
        let run = try query(sql, "--json")
        #expect(run.status == 77)
        #expect(try run.failureCode() == "readOnly")
    }

    /// Statements that SQLite calls read-only, and that change the file, its key, another file or the process.
    private static let actingStatements = [
        "PRAGMA rekey = 'hunter2'", "PRAGMA key = 'hunter2'", "PRAGMA hexrekey('68')", "PRAGMA cipher_profile = 'out'",
        "PRAGMA cipher_log = 'out'", "PRAGMA cipher_migrate", "PRAGMA cipher_page_size = 1024", "ATTACH 'out' AS o",
        "PRAGMA journal_mode = DELETE", "BEGIN", "PRAGMA cipher_profile = 'app.db'",
    ]

    @Test("Statements that do more than read are refused before they run", arguments: actingStatements, [true, false])
    func acting(_ sql: String, isEncrypted: Bool) throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: isEncrypted)
        let before = try fixture.snapshot()
        let key = isEncrypted ? ["--key-file", fixture.key] : []
        let run = try fixture.run(["query", fixture.database, sql, "--json"] + key)
        #expect(try fixture.snapshot() == before)
        #expect(run.status == 77, "\(run.output)")
        #expect(try run.failureCode() == "readOnly")
        #expect(!run.errors.contains("hunter2"))
    }

    @Test func misspelledNameInQuotes() throws {
        let run = try query("SELECT * FROM note WHERE \"bodi\" > 'a'", "--json")
        #expect(run.status == 65)
        #expect(try run.failureCode() == "sql")
    }

    @Test(arguments: ["PRAGMA user_version", "PRAGMA table_info(note)", "PRAGMA cipher_version", "PRAGMA quick_check"])
    func readingPragmas(_ sql: String) throws {
        #expect(try query(sql).status == 0)
    }

    @Test(arguments: ["SELECT", "SELECT nothing FROM note", "SELECT * FROM missing", "SELECT 1; SELECT"])
    func wrongSQL(_ sql: String) throws {
        let run = try query(sql, "--json")
        #expect(run.status == 65)
        #expect(try run.failureCode() == "sql")
    }

    @Test(arguments: ["SELECT 1; SELECT 2", "", "/* nothing */", "SELECT ?"])
    func notOneStatement(_ sql: String) throws {
        let run = try query(sql)
        #expect(run.status == 64, "\(run.errors)")
        #expect(run.errors.contains("one statement"))
    }

    @Test(arguments: ["SELECT 1; -- a comment", "SELECT 1 ; ; "])
    func oneStatement(_ sql: String) throws {
        #expect(try query(sql).status == 0)
    }

    @Test func unwritableOutput() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let arguments = ["query", fixture.database, "SELECT * FROM note"]
        #expect(try fixture.run(shell: "exec \"$@\" > /dev/full", arguments).status == 73)
        #expect(try fixture.run(shell: "exec \"$@\" >&-", arguments).status == 74)
        // A pipe whose reader has gone: an error, and not the end by a signal.
        let pipe = "mkfifo pipe; exec 3<>pipe 4>pipe; exec 3>&-; exec \"$@\" >&4"
        #expect(try fixture.run(shell: pipe, arguments).status == 74)
    }

    @Test func damagedPage() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true)
        try fixture.overwrite(at: 4 * CipherSettings().pageSize + 3, with: [0xff, 0xff, 0xff, 0xff])
        let run = try fixture.run(
            "query", fixture.database, "SELECT sum(length(body)), sum(length(payload)) FROM note NOT INDEXED",
            "--key-file", fixture.key, "--json")
        #expect(run.status == 65, "\(run.errors)")
        // The key has fitted, and must not be blamed.
        #expect(try run.failureCode() == "corrupt")
    }
}
