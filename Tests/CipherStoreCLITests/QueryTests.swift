internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The rows of a query in each output format, and what a query may not do.
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

    @Test("Every value is exact in JSON, and columns with the same name are distinguished")
    func json() throws {
        let run = try query(Self.sql, "--json")
        #expect(run.status == 0)
        // Foundation would round the integer, so the test examines the text.
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

    @Test("CSV distinguishes NULL from empty text, and quotes what must be quoted")
    func csv() throws {
        let run = try query("SELECT 1 AS a, NULL AS b, '' AS \"c,d\", 'x\ny \"z\"' AS e, X'0a' AS f", "--csv")
        #expect(run.output == "a,b,\"c,d\",e,f\r\n1,,\"\",\"x\ny \"\"z\"\"\",X'0a'\r\n")
    }

    /// Text that a terminal would interpret: ESC, C1, DEL, and a direction override; and bytes that are not valid
    /// text.
    private static let hostile =
        "SELECT 'a' || char(27, 155, 127, 8238) || '[31m' AS \"n\u{9b}\u{202e}\", CAST(X'41ff42' AS TEXT) AS b"

    @Test("CSV written to a pipe has the text unchanged, to the byte")
    func csvToThePipe() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let file = fixture.folder.path("out")
        let shell = TestProgram(path: "/bin/sh")
        let run = try shell.run([
            "-c", "exec \"$0\" query \"$1\" \"$2\" --csv > \"$3\"", Programs.tool, fixture.database, Self.hostile, file,
        ])
        #expect(run.status == 0)
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: file)))
        let text = Array("n\u{9b}\u{202e},b\r\na\u{1b}\u{9b}\u{7f}\u{202e}[31m,A".utf8)
        #expect(bytes == text + [0xff] + Array("B\r\n".utf8))
    }

    private static let script = TestProgram(path: "/usr/bin/script")

    @Test("CSV written to a terminal has no character that the terminal would interpret", .enabled(if: script.isThere))
    func csvToTheTerminal() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let sql = Self.hostile.replacing("'", with: "'\\''")
        let run = try Self.script.run([
            "-qec", "'\(Programs.tool)' query '\(fixture.database)' '\(sql)' --csv", "/dev/null",
        ])
        #expect(run.output.contains(#"a\u{1b}\u{9b}\u{7f}\u{202e}[31m,A\xffB"#), "\(run.output)")
        #expect(!run.output.unicodeScalars.contains { $0 != "\r" && $0 != "\n" && SystemPath.escape($0) != nil })
    }

    @Test("A table and JSON escape what a terminal would interpret, and show bytes that are not UTF-8")
    func hostileText() throws {
        let table = try query(Self.hostile)
        #expect(table.output.contains(#"a\u{1b}\u{9b}\u{7f}\u{202e}[31m  A\xffB"#), "\(table.output)")
        let json = try query(Self.hostile, "--json")
        #expect(json.output.contains(#""n\u009b\u202e":"a\u001b\u009b\u007f\u202e[31m""#), "\(json.output)")
        for output in [table.output, json.output] {
            #expect(!output.unicodeScalars.contains { $0 != "\n" && SystemPath.escape($0) != nil })
        }
    }

    @Test("A JSON report escapes what a terminal would interpret, and decodes to the same name")
    func hostileName() throws {
        let fixture = try ToolFixture()
        let name = "a\u{9b}\u{202e}\u{7f}b.db"
        let run = try fixture.run(["inspect", fixture.folder.path(name), "--json"])
        #expect(run.output.contains(#"a\u009b\u202e\u007fb.db"#), "\(run.output)")
        #expect(!run.output.unicodeScalars.contains { $0 != "\n" && SystemPath.escape($0) != nil })
        #expect((try run.object()["path"] as? String)?.hasSuffix(name) == true)
    }

    @Test("A table aligns wide characters, and escapes what a terminal would interpret")
    func table() throws {
        let run = try query("SELECT 7 AS n, '你好' AS text UNION ALL SELECT 123, 'a' || char(27) || '[31m'")
        #expect(
            run.output == """
                n    text
                ---  -----------
                  7  你好
                123  a\\u{1b}[31m

                """)
    }

    @Test("A result of many rows is printed completely")
    func manyRows() throws {
        let run = try query("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT i FROM n")
        #expect(run.output.split(separator: "\n").count == 20_002)
        #expect(run.output.hasSuffix("\n20000\n"))
    }

    /// SQLite before 3.27 does not have VACUUM INTO.
    private static let writingStatements =
        [
            "DELETE FROM note", "INSERT INTO note(body) VALUES ('x')", "CREATE TABLE x(y)", "VACUUM",
            "PRAGMA user_version = 9",
        ] + (Engine.current.sqliteVersionNumber >= 3_027_000 ? ["VACUUM INTO 'copy.db'"] : [])

    @Test("A statement that writes is refused, and nothing is changed", arguments: writingStatements)
    func writing(_ sql: String) throws {
        let run = try query(sql, "--json")
        #expect(run.status == 77)
        #expect(try run.failureCode() == "readOnly")
    }

    /// Statements that SQLite considers read-only, but that change the file, its key, another file or the process.
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

    @Test("A misspelled name in double quotes is an error, not text")
    func misspelledNameInQuotes() throws {
        let run = try query("SELECT * FROM note WHERE \"bodi\" > 'a'", "--json")
        #expect(run.status == 65)
        #expect(try run.failureCode() == "sql")
    }

    @Test(
        "A pragma that only reads is run",
        arguments: ["PRAGMA user_version", "PRAGMA table_info(note)", "PRAGMA cipher_version", "PRAGMA quick_check"])
    func readingPragmas(_ sql: String) throws {
        #expect(try query(sql).status == 0)
    }

    @Test(
        "SQL that SQLite rejects has its own error code",
        arguments: ["SELECT", "SELECT nothing FROM note", "SELECT * FROM missing", "SELECT 1; SELECT"])
    func wrongSQL(_ sql: String) throws {
        let run = try query(sql, "--json")
        #expect(run.status == 65)
        #expect(try run.failureCode() == "sql")
    }

    @Test(
        "No statement, or more than one, is a usage error",
        arguments: ["SELECT 1; SELECT 2", "", "/* nothing */", "SELECT ?"])
    func notOneStatement(_ sql: String) throws {
        let run = try query(sql)
        #expect(run.status == 64, "\(run.errors)")
        #expect(run.errors.contains("one SQL statement"))
    }

    @Test(
        "A statement may be followed by a comment or semicolons",
        arguments: ["SELECT 1; -- a comment", "SELECT 1 ; ; "])
    func oneStatement(_ sql: String) throws {
        #expect(try query(sql).status == 0)
    }

    @Test("An output that cannot be written is an error, and no signal ends the tool")
    func unwritableOutput() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let arguments = ["query", fixture.database, "SELECT * FROM note"]
        #expect(try fixture.run(shell: "exec \"$@\" > /dev/full", arguments).status == 73)
        #expect(try fixture.run(shell: "exec \"$@\" >&-", arguments).status == 74)
        // A pipe whose reader has ended causes an error, and does not end the tool with a signal.
        let pipe = "mkfifo pipe; exec 3<>pipe 4>pipe; exec 3>&-; exec \"$@\" >&4"
        #expect(try fixture.run(shell: pipe, arguments).status == 74)
    }

    @Test("A damaged page is reported as damage, not as a wrong key")
    func damagedPage() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true)
        try fixture.overwrite(at: 4 * CipherSettings().pageSize + 3, with: [0xff, 0xff, 0xff, 0xff])
        let run = try fixture.run(
            "query", fixture.database, "SELECT sum(length(body)), sum(length(payload)) FROM note NOT INDEXED",
            "--key-file", fixture.key, "--json")
        #expect(run.status == 65, "\(run.errors)")
        // The key was correct, so the message must not blame it.
        #expect(try run.failureCode() == "corrupt")
    }

    @Test("query does not vouch for a value that ends with a page that is not authentic")
    func forgedEnd() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true, "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(20000))")
        let size = try Data(contentsOf: URL(filePath: fixture.database)).count
        let query = ["query", fixture.database, "SELECT hex(a) FROM t", "--key-file", fixture.key]
        #expect(try fixture.run(query).status == 0)
        try fixture.overwrite(at: size - 2_000, with: [1, 2, 3])
        // The row is printed before the page after its last one is read.
        #expect(try fixture.run(query).status == 65)
    }
}
