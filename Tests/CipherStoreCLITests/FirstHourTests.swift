import CipherStoreCLI
import CipherTestSupport
import Foundation
import Testing

/// What a new user encounters in the first hour, and mistakes that are likely then.
struct FirstHourTests {
    let fixture: ToolFixture

    init() throws {
        fixture = try ToolFixture()
    }

    /// Runs the tool with a key on standard input.
    private func run(typing key: String, _ arguments: String...) throws -> ToolRun {
        try fixture.run(shell: "tool=$1; shift; printf '%s' '\(key)' | \"$tool\" \"$@\"", arguments)
    }

    @Test("A key from standard input encrypts and opens a database, with or without a newline at its end")
    func keyFromStandardInput() throws {
        try fixture.make()
        #expect(try run(typing: "correct horse\n", "encrypt", fixture.database, "--key-file", "-").status == 0)
        let query = try run(typing: "correct horse", "query", fixture.database, "--key-file", "-", "SELECT 1 AS one")
        #expect(query.status == 0, "\(query.errors)")
        #expect(query.output.contains("one"))
        #expect(try run(typing: "other", "inspect", fixture.database, "--key-file", "-").status == 65)
    }

    @Test("An empty standard input is an empty key, and nothing is changed")
    func emptyStandardInput() throws {
        try fixture.make()
        let before = try fixture.snapshot()
        let run = try fixture.run("encrypt", fixture.database, "--key-file", "-")
        #expect(run.status == 65, "\(run.errors)")
        #expect(run.errors.contains("the key from standard input is empty"))
        #expect(try fixture.snapshot() == before)
    }

    @Test("A missing key file is reported with the command that creates one")
    func missingKeyFile() throws {
        try fixture.make()
        let run = try fixture.run("encrypt", fixture.database, "--key-file", "no.key")
        #expect(run.status == 66)
        #expect(run.errors.hasPrefix("cipherstore: no.key: "))
        #expect(run.errors.contains("run cipherstore keygen no.key"))
    }

    @Test("A new key file is named in the output, with the advice to keep a copy")
    func keygen() throws {
        let run = try fixture.run("keygen", "new.key")
        #expect(run.output.hasPrefix("created the key file new.key; keep a safe copy"))
    }

    @Test(
        "A key that was probably meant to be raw is used as a passphrase, with a warning in the report",
        arguments: ["%", "%%", "0x%", "x\"%\"", "x\u{2018}%\u{2019}"])
    func mistakenKey(_ form: String) throws {
        try fixture.make()
        let digits = String(repeating: "ab", count: 32)
        let text = form.replacing("%%", with: digits + digits.prefix(32)).replacing("%", with: digits)
        let key = try fixture.keys.write(text, to: "digits")
        for command in ["encrypt", "encrypt", "rekey"] {
            let more = command == "rekey" ? ["--cipher-compatibility", "3"] : []
            let run = try fixture.run([command, fixture.database, "--key-file", key, "--json"] + more)
            #expect(run.status == 0, "\(run.errors)")
            let warnings = try #require(try run.object()["warnings"] as? [String]).besidesLeases
            #expect(warnings.count == 1 && run.errors.contains(warnings[0]), "\(run.errors)")
            #expect(!(run.errors + run.output).contains("abab"))
        }
    }

    @Test("A run on many files prints a warning about their shared key once")
    func sharedMistakenKey() throws {
        for name in ["a.db", "b.db"] { try fixture.make(name) }
        let key = try fixture.keys.write("0x" + String(repeating: "ab", count: 32), to: "digits")
        let run = try fixture.run("encrypt", ".", "--recursive", "--json", "--key-file", key)
        #expect(run.status == 0)
        #expect(run.errors.components(separatedBy: "warning:").count == 2, "\(run.errors)")
        #expect(run.output.components(separatedBy: "0x instead of x'").count == 3, "\(run.output)")
    }

    @Test("A raw key and a passphrase cause no warning", arguments: ["x'\(ToolFixture.rawKey)'", "abc123"])
    func noWarning(_ text: String) throws {
        try fixture.make()
        let key = try fixture.keys.write(text, to: "plain")
        #expect(try fixture.run("encrypt", fixture.database, "--key-file", key).errors.isEmpty)
    }

    @Test("An encrypted database is reported as unchanged")
    func unchanged() throws {
        try fixture.make()
        #expect(try fixture.run("encrypt", fixture.database, "--key-file", fixture.key).output.hasPrefix("encrypted "))
        #expect(try fixture.run("encrypt", fixture.database, "--key-file", fixture.key).output.hasPrefix("unchanged "))
    }

    @Test("A folder without --recursive is refused, and the error names the option", arguments: ["encrypt", "verify"])
    func folder(_ command: String) throws {
        let run = try fixture.run(command, ".", "--key-file", fixture.key)
        #expect(run.status == 65)
        #expect(run.errors.contains(".: this is a directory"))
        #expect(run.errors.contains("--recursive"))
    }

    @Test("A raw key in the place of its file is refused, and not repeated", arguments: [32, 48], [false, true])
    func keyAsFile(bytes: Int, isMarked: Bool) throws {
        let digits = String(repeating: "a7", count: bytes)
        let run = try fixture.run("verify", fixture.database, "--key-file", isMarked ? "x'\(digits)'" : digits)
        #expect(run.status == 64)
        #expect(run.errors.contains("--key-file takes the path of a file, not the key itself"))
        #expect(!run.errors.contains(digits))
    }

    @Test("A raw key in the place of a name is refused, and not repeated", arguments: ["env", "credential"])
    func keyAsName(_ source: String) throws {
        let digits = String(repeating: "a7", count: 32)
        let run = try fixture.run("verify", fixture.database, "--key-\(source)", "x'\(digits)'")
        #expect(run.status == 64)
        #expect(run.errors.contains("--key-\(source) takes a name, not the key itself"))
        #expect(!run.errors.contains(digits))
    }

    @Test(
        "A raw key in the place of a database is refused, and not repeated", arguments: ["encrypt", "inspect", "query"])
    func keyAsDatabase(_ command: String) throws {
        let digits = String(repeating: "a7", count: 32)
        let sql = command == "query" ? ["SELECT 1"] : []
        let run = try fixture.run([command, "x'\(digits)'"] + sql)
        #expect(run.status == 64)
        #expect(run.errors.contains("the argument DB takes a path, not the key itself"), "\(run.errors)")
        #expect(!(run.errors + run.output).contains(digits))
    }

    @Test("A missing configuration is reported with the database")
    func missingConfiguration() throws {
        let run = try fixture.run("migrate", fixture.database, "--key-file", fixture.key)
        #expect(run.status == 64)
        #expect(run.errors.hasPrefix("cipherstore: \(fixture.database): --config FILE is required"), "\(run.errors)")
    }

    @Test("A key file whose name could be a raw key is read")
    func keyFileNamedLikeKey() throws {
        try fixture.make()
        let name = String(repeating: "a7", count: 32)
        try FileManager.default.copyItem(atPath: fixture.key, toPath: fixture.folder.path(name))
        let run = try fixture.run("encrypt", fixture.database, "--key-file", name)
        #expect(run.status == 0, "\(run.errors)")
    }

    @Test(
        "A file that cannot be a database is not reported as one with another key",
        arguments: [("hello world\n", "it contains text"), ("\u{1f}\u{1}\u{2}", "it has 3 bytes")])
    func noDatabase(_ file: (content: String, says: String)) throws {
        try fixture.folder.write(file.content, to: "app.db")
        let inspection = try fixture.run("inspect", fixture.database)
        #expect(inspection.output.contains("does not look like a database: \(file.says)"), "\(inspection.output)")
        for command in [["encrypt"], ["query"], ["verify"]] {
            let sql = command == ["query"] ? ["SELECT 1"] : []
            let run = try fixture.run(command + [fixture.database] + sql + ["--key-file", fixture.key])
            #expect(run.status == 65)
            #expect(run.errors.contains("the file does not look like a database: \(file.says)"), "\(run.errors)")
        }
    }

    @Test("A file whose bytes do not look encrypted is not reported as one with another key")
    func unencryptedBytes() throws {
        let data = Data((0..<8192).map { UInt8(($0 / 100) % 3) })
        try data.write(to: URL(filePath: fixture.database))
        let inspection = try fixture.run("inspect", fixture.database)
        #expect(inspection.output.contains("its bytes do not look encrypted"), "\(inspection.output)")
        for command in ["encrypt", "verify", "rekey", "diagnose"] {
            let more = command == "rekey" ? ["--new-key-file", fixture.otherKey] : []
            let run = try fixture.run([command, fixture.database, "--key-file", fixture.key] + more)
            #expect(run.status == 65 && run.errors.contains("its bytes do not look encrypted"), "\(run.errors)")
            #expect(!run.errors.contains("check the key"), "\(run.errors)")
        }
    }

    @Test("A plaintext database whose magic string is overwritten is reported as a damaged one")
    func overwrittenMagic() throws {
        try fixture.make()
        var data = try Data(contentsOf: URL(filePath: fixture.database))
        data.replaceSubrange(0..<6, with: Data("FooBar".utf8))
        try data.write(to: URL(filePath: fixture.database))
        let says = "the file is a plaintext database with a damaged first page"
        let inspection = try fixture.run("inspect", fixture.database)
        #expect(inspection.output.contains(says), "\(inspection.output)")
        for command in ["encrypt", "verify", "diagnose"] {
            let run = try fixture.run(command, fixture.database, "--key-file", fixture.key)
            #expect(run.status == 65 && run.errors.contains(says), "\(run.errors)")
            #expect(!run.errors.contains("check the key"), "\(run.errors)")
        }
    }

    @Test("A definition that SQLite refuses is named, and the advice also fits one that no version accepts")
    func refusedDefinition() throws {
        try LegacyFile.write(
            fixture.database,
            script: """
                CREATE TABLE t(a);
                PRAGMA writable_schema = ON;
                INSERT INTO sqlite_master VALUES ('view', 'odd', 'odd', 0, 'CREATE VIEW odd (col one) AS SELECT 1');
                """)
        var data = try Data(contentsOf: URL(filePath: fixture.database))
        // The version 3.99.0 as the last writer.
        data.replaceSubrange(96..<100, with: [0x00, 0x2f, 0x49, 0x78])
        try data.write(to: URL(filePath: fixture.database))
        let run = try fixture.run("encrypt", fixture.database, "--key-file", fixture.key)
        #expect(run.status == 78 && run.errors.contains("the definition of odd"), "\(run.errors)")
        #expect(run.errors.contains("syntax error"), "\(run.errors)")
        #expect(run.errors.contains("correct or remove the object"), "\(run.errors)")
    }

    @Test("An opaque file is reported as encrypted or damaged, and a wrong key as a wrong key")
    func opaque() throws {
        try fixture.make()
        try fixture.run("encrypt", fixture.database, "--key-file", fixture.key)
        let inspection = try fixture.run("inspect", fixture.database)
        #expect(inspection.output.contains("opaque (encrypted or damaged; specify a key"))
        let run = try fixture.run("verify", fixture.database, "--key-file", fixture.otherKey)
        #expect(run.errors.contains("the key does not open this file"), "\(run.errors)")
        #expect(run.errors.contains("run cipherstore diagnose with the file and this key"), "\(run.errors)")
        // Space that was allocated in advance, and a longer readable header, are not damage.
        var data = try Data(contentsOf: URL(filePath: fixture.database)) + Data(count: 1 << 16)
        for header in [0, 48, 80] {
            if header > 0 {
                data.replaceSubrange(0..<header, with: Data("SQLite format 3\0".utf8) + Data(count: header - 16))
            }
            try data.write(to: URL(filePath: fixture.database))
            let inspection = try fixture.run("inspect", fixture.database)
            #expect(inspection.output.contains("opaque (encrypted or damaged; specify a key"), "\(inspection.output)")
            let run = try fixture.run("verify", fixture.database, "--key-file", fixture.otherKey)
            // SQLCipher 3 has no readable headers, and does not ask for the salt.
            let isAboutSalt = run.errors.contains("does not contain its salt")
            #expect(isAboutSalt || run.errors.contains("the key does not open this file"), "\(header): \(run.errors)")
        }
    }

    @Test("The progress of a shadow proof shows no swap")
    func rehearsal() throws {
        try fixture.make()
        let run = try fixture.run(
            "encrypt", fixture.database, "--key-file", fixture.key, "--shadow", "--progress", "always")
        #expect(run.status == 0)
        #expect(run.errors.contains("proving"))
        #expect(!run.errors.contains("swapping"))
    }

    @Test("A database without any of the declared tables is migrated with a note")
    func otherDatabase() throws {
        try fixture.folder.write(
            #"{"dbName": "app.db", "dbVersion": 2, "dbTables": [{"chat": [{"id": "INTEGER PRIMARY KEY"}]}]}"#,
            to: "app.json")
        try fixture.make("app.db", "CREATE TABLE invoice(id INTEGER PRIMARY KEY)")
        let run = try fixture.run(
            "migrate", "--config", "app.json", "--directory", ".", "--key-file", fixture.key)
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.output.contains("none of the declared tables, but it contains invoice: check the path"))
    }

    @Test("The manual page has sections for files, environment and exit statuses")
    func manual() throws {
        let page = try fixture.run("manual").output
        for section in ["EXIT STATUS", "FILES", "ENVIRONMENT", "SEE ALSO"] {
            #expect(page.contains(".SH \(section)\n"), "\(section)")
        }
        #expect(page.contains(".B 130\n"))
    }

    @Test(
        "Sizes are printed in a suitable unit",
        arguments: [
            (1, "1 byte"), (999, "999 bytes"), (8192, "8.2 KB"), (433_100_000, "433.1 MB"), (12_000_000_000, "12.0 GB"),
        ])
    func sizes(_ size: (bytes: Int, text: String)) {
        #expect(TerminalText.size(size.bytes) == size.text)
    }
}
