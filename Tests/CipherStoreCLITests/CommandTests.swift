internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The commands when they succeed.
@Suite struct CommandTests {
    @Test("inspect reports each state of a database, and changes nothing")
    func inspectStates() throws {
        let fixture = try ToolFixture()
        func state(_ arguments: String...) throws -> (ToolRun, String?) {
            let before = try fixture.snapshot()
            let run = try fixture.run(["inspect", fixture.database, "--json"] + arguments)
            #expect(try fixture.snapshot() == before)
            return (run, try run.object()["state"] as? String)
        }
        var found = try state()
        #expect(found.0.status == 66)
        #expect(found.1 == "missing")
        try fixture.folder.write("", to: "app.db")
        found = try state()
        #expect(found.0.status == 0)
        #expect(found.1 == "empty")

        try FileManager.default.removeItem(atPath: fixture.database)
        try fixture.makeWithLiveLog()
        found = try state()
        #expect(found.1 == "plaintext")
        // The version is in the -wal.
        #expect(try found.0.object()["version"] as? Int == 23)
        #expect(try found.0.object()["applicationID"] as? Int == 77)
        #expect(try found.0.object()["journalMode"] as? String == "wal")
        let sidecars = try #require(try found.0.object()["sidecars"] as? [String: Int])
        #expect(sidecars.keys.sorted() == ["app.db-wal"])

        try fixture.run("encrypt", fixture.database, "--key-file", fixture.key)
        #expect(try state().1 == "opaque")
        found = try state("--key-file", fixture.key)
        #expect(found.1 == "encrypted")
        #expect(try found.0.object()["version"] as? Int == 23)
        #expect(try (found.0.object()["sidecars"] as? [String: Int])?.isEmpty == true)
    }

    @Test("inspect reports a log that belongs to another file, and changes nothing")
    func inspectStaleSidecar() throws {
        let fixture = try ToolFixture()
        try fixture.makeWithLiveLog()
        let log = try Data(contentsOf: fixture.folder.url.appending(path: "app.db-wal"))
        try fixture.run("encrypt", fixture.database, "--key-file", fixture.key)
        try log.write(to: fixture.folder.url.appending(path: "app.db-wal"))
        let before = try fixture.snapshot()
        let run = try fixture.run("inspect", fixture.database, "--key-file", fixture.key)
        #expect(run.status == 0)
        #expect(run.output.contains("staleSidecar"))
        #expect(try fixture.snapshot() == before)
    }

    @Test("Commands that only read leave a hot journal alone, and the upgrade rolls it back", arguments: [false, true])
    func hotJournal(_ isEncrypted: Bool) throws {
        let fixture = try ToolFixture()
        try fixture.makeWithHotJournal(encrypted: isEncrypted)
        let before = try fixture.snapshot()
        #expect(before.keys.sorted() == ["app.db", "app.db-journal"])
        let key = ["--key-file", fixture.key]
        let inspect = try fixture.run(["inspect", fixture.database, "--json"] + key)
        #expect(inspect.status == 0, "\(inspect.errors)")
        #expect(try inspect.object()["state"] as? String == "needsRecovery")
        for command in [["verify", fixture.database], ["query", fixture.database, "SELECT 1"]] {
            let run = try fixture.run(command + key + ["--json"])
            #expect(run.status == 75)
            #expect(try run.failureCode() == "needsRecovery")
        }
        #expect(try fixture.snapshot() == before)

        // The upgrade rolls back the journal.
        #expect(try fixture.run(["encrypt", fixture.database] + key).status == 0)
        #expect(try fixture.run(["verify", fixture.database] + key).status == 0)
        let changed = try fixture.run(
            ["query", fixture.database, "SELECT count(*) FROM note WHERE body = 'changed'", "--csv"] + key)
        #expect(changed.output == "count(*)\r\n0\r\n")
        #expect(try fixture.folder.names == ["app.db"])
    }

    @Test("inspect finds an older format of SQLCipher, and query reads it if the format is specified")
    func detect() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true, settings: CipherSettings(compatibility: 3))
        let run = try fixture.run("inspect", fixture.database, "--key-file", fixture.key, "--detect", "--json")
        #expect(run.status == 0, "\(run.errors)")
        #expect(try run.object()["cipherCompatibility"] as? Int == 3)
        let query = try fixture.run(
            "query", fixture.database, "PRAGMA user_version", "--key-file", fixture.key, "--cipher-compatibility", "3",
            "--csv")
        #expect(query.output == "user_version\r\n23\r\n")
    }

    @Test("encrypt follows a link, keeps a backup on request, and does nothing the second time")
    func encrypt() throws {
        let fixture = try ToolFixture()
        try fixture.makeWithLiveLog()
        try FileManager.default.createSymbolicLink(
            atPath: fixture.folder.path("link.db"), withDestinationPath: "app.db")
        let run = try fixture.run("encrypt", "link.db", "--key-file", fixture.key, "--keep-backup", "--json")
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.errors.isEmpty)
        let report = try run.object()
        #expect(report["outcome"] as? String == "encrypted")
        #expect(report["tables"] as? Int == 1)
        #expect(report["rows"] as? Int == 400)
        for key in ["bytesBefore", "bytesAfter", "seconds"] { #expect(report[key] is NSNumber, "\(key)") }
        #expect((report["cipherVersion"] as? String)?.isEmpty == false)
        #expect(try fixture.folder.names == ["app.db", "app.db-plaintext", "link.db"])

        let again = try fixture.run("encrypt", fixture.database, "--key-file", fixture.key, "--json")
        #expect(again.status == 0)
        #expect(try again.object()["outcome"] as? String == "alreadyEncrypted")
    }

    @Test("encrypt prints what it compared, and shows no progress without a terminal")
    func encryptForPeople() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let run = try fixture.run("encrypt", fixture.database, "--key-file", fixture.key)
        #expect(run.status == 0)
        #expect(run.output.contains("compared 1 table and 400 rows: every value, rowid and index entry matches"))
        #expect(run.errors.isEmpty, "no progress without a terminal")

        try fixture.folder.write("", to: "empty.db")
        let created = try fixture.run("encrypt", "empty.db", "--key-file", fixture.key, "--json")
        #expect(created.status == 0)
        #expect(try created.object()["outcome"] as? String == "created")
        #expect(try fixture.run("verify", "empty.db", "--key-file", fixture.key).status == 0)
        #expect(try fixture.folder.names == ["app.db", "empty.db"])
    }

    @Test("An existing file in the backup's place stays, and the backup takes the next name")
    func existingBackup() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        try fixture.folder.write("mine", to: "app.db-plaintext")
        let before = try fixture.snapshot()
        let run = try fixture.run("encrypt", fixture.database, "--key-file", fixture.key, "--keep-backup", "--json")
        #expect(run.status == 0)
        let backup = try #require(try run.object()["backup"] as? String)
        #expect(backup.hasSuffix("app.db-plaintext-2"))
        #expect(try fixture.snapshot()["app.db-plaintext"] == before["app.db-plaintext"])
        #expect(try fixture.snapshot()["app.db-plaintext-2"] == before["app.db"])
    }

    @Test("A key comes from a file, the environment or a credential, and a missing key is reported")
    func keySources() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let environment = ["TEST_KEY": ToolFixture.passphrase, "CREDENTIALS_DIRECTORY": fixture.keys.path("")]
        try fixture.keys.write(ToolFixture.passphrase + "\n", to: "credential")
        let unset = try fixture.run("encrypt", fixture.database, "--key-env", "TEST_KEY_UNSET", "--json")
        #expect(unset.status == 66)
        #expect(try unset.failureCode() == "keyUnavailable")
        let arguments = ["encrypt", fixture.database]
        #expect(try fixture.run(arguments + ["--key-env", "TEST_KEY"], environment: environment).status == 0)
        let verify = ["verify", fixture.database]
        #expect(try fixture.run(verify + ["--key-credential", "credential"], environment: environment).status == 0)
        #expect(try fixture.run(verify + ["--key-file", fixture.key]).status == 65)
        #expect(try fixture.run(verify).status == 64)
    }

    @Test("Each command that reads a sound file in format 1 says that its pages are not authenticated")
    func readsFirstFormat() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true, settings: CipherSettings(compatibility: 1))
        let options = ["--key-file", fixture.key, "--cipher-compatibility", "1"]
        for command in [
            ["verify", fixture.database], ["inspect", fixture.database],
            ["query", fixture.database, "SELECT count(*) FROM note"],
        ] {
            let run = try fixture.run(command + options)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.errors.contains("format 1"), "\(command)")
        }
        #expect(try fixture.run(["verify", fixture.database] + options).output.contains("no authentication"))
    }

    @Test("verify passes a sound file, and fails for a damaged page without showing a row", arguments: [false, true])
    func verify(_ isEncrypted: Bool) throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: isEncrypted)
        let arguments = ["verify", fixture.database, "--json"] + (isEncrypted ? ["--key-file", fixture.key] : [])
        let sound = try fixture.run(arguments)
        #expect(sound.status == 0, "\(sound.errors)")
        #expect(try sound.object()["state"] as? String == (isEncrypted ? "encrypted" : "plaintext"))
        #expect(try (sound.object()["complaints"] as? [String])?.isEmpty == true)

        // A leaf of the table or its index, not the schema's page.
        let pageSize = isEncrypted ? CipherSettings().pageSize : 4096
        try fixture.overwrite(at: 4 * pageSize + 3, with: [0xff, 0xff, 0xff, 0xff])
        let before = try fixture.snapshot()
        let damaged = try fixture.run(arguments)
        #expect(damaged.status == 65)
        #expect(try (damaged.object()["complaints"] as? [String])?.isEmpty == false)
        #expect(damaged.errors.contains("the database is damaged"))
        #expect(!damaged.output.contains("a body of some length"))
        #expect(try fixture.snapshot() == before)
    }

    @Test("encrypt refuses a file with a damaged page and leaves it unchanged")
    func damagedPageIsNotEncrypted() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        try fixture.overwrite(at: 4 * 4096 + 3, with: [0xff, 0xff, 0xff, 0xff])
        let before = try fixture.snapshot()
        let run = try fixture.run("encrypt", fixture.database, "--key-file", fixture.key, "--json")
        #expect(run.status == 65, "\(run.errors)")
        #expect(try run.failureCode() == "corrupt")
        #expect(try fixture.snapshot() == before)
    }

    @Test("migrate does what plan says, and plan changes nothing")
    func planAndMigrate() throws {
        let fixture = try ToolFixture()
        try fixture.makeWithLiveLog()
        let store = ["--config", try fixture.configuration(), "--directory", fixture.folder.path("")]
        let before = try fixture.snapshot()
        let plan = try fixture.run(["plan"] + store)
        #expect(plan.status == 0, "\(plan.errors)")
        #expect(plan.output.contains("it would be encrypted first"))
        #expect(plan.output.contains("CREATE TABLE \"label\""))
        #expect(plan.output.contains("\"pinned\""))
        let machine = try fixture.run(["plan", "--json"] + store)
        #expect(try machine.object()["step"] as? String == "encrypt")
        #expect(try fixture.snapshot() == before)

        let key = ["--key-file", fixture.key]
        let keyless = try fixture.run(["migrate"] + store)
        #expect(keyless.status == 64)
        #expect(try fixture.snapshot() == before)

        let migrated = try fixture.run(["migrate", "--json"] + store + key)
        #expect(migrated.status == 0, "\(migrated.errors)")
        #expect(try migrated.object()["outcome"] as? String == "encrypted")
        let again = try fixture.run(["migrate"] + store + key)
        #expect(again.status == 0)
        #expect(again.output.contains("nothing to do"))
        #expect(try fixture.run(["plan"] + store + key).output.contains("encrypted, and the key opens it"))
        let version = try fixture.run(
            "query", fixture.database, "PRAGMA user_version", "--csv", "--key-file", fixture.key)
        #expect(version.output == "user_version\r\n26\r\n")
    }

    @Test("migrate creates a missing database, and plan does not")
    func migrateMakesADatabase() throws {
        let fixture = try ToolFixture()
        let store = ["--config", try fixture.configuration(), "--directory", fixture.folder.path("")]
        #expect(try fixture.run(["plan", "--json"] + store).object()["step"] as? String == "create")
        #expect(try fixture.folder.names.isEmpty)
        let run = try fixture.run(["migrate", "--json"] + store + ["--key-file", fixture.key])
        #expect(try run.object()["outcome"] as? String == "created")
        #expect(try fixture.run("verify", fixture.database, "--key-file", fixture.key).status == 0)
    }

    @Test("plan and migrate refuse a wrong configuration, and nothing is changed")
    func wrongConfiguration() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let before = try fixture.snapshot()
        let store = [
            "--config", try fixture.configuration("\"dbTabels\": [],"), "--directory", fixture.folder.path(""),
        ]
        for command in ["plan", "migrate"] {
            let run = try fixture.run([command, "--json"] + store + ["--key-file", fixture.key])
            #expect(run.status == 78)
            #expect(try run.failureCode() == "configuration")
        }
        #expect(try fixture.snapshot() == before)
    }

    @Test("keygen creates a key that only its owner can read, never shows it and replaces no file")
    func keygen() throws {
        let fixture = try ToolFixture()
        let made = try fixture.run("keygen", "new.key")
        #expect(made.status == 0)
        let path = fixture.folder.path("new.key")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.count == 68)
        #expect(!(made.output + made.errors).contains(text.dropFirst(2).prefix(64)))
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        let before = try fixture.snapshot()
        #expect(try fixture.run("keygen", "new.key").status == 73)
        #expect(try fixture.run("keygen", "no/such/folder.key").status == 66)
        // Exceeding a limit of file sizes is an error, and does not end the tool with a signal.
        #expect(try fixture.run(shell: "ulimit -f 0; exec \"$@\" 2>&-", ["keygen", "other.key"]).status == 73)
        #expect(try fixture.snapshot() == before)
    }

    @Test("plan prints what would be lost, and exits with 78 if the policy is refuse")
    func planFindings() throws {
        let fixture = try ToolFixture()
        try fixture.make(
            "app.db",
            """
            CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT, payload BLOB, weight REAL, draft TEXT);
            INSERT INTO note(body, draft) VALUES ('a', 'x'), ('b', NULL), ('c', 'y'); PRAGMA user_version = 23;
            """)
        let store = ["--directory", fixture.folder.path(""), "--key-file", fixture.key]
        func plan(_ policy: String, _ options: String...) throws -> ToolRun {
            let configuration = try fixture.configuration("\"destructiveChanges\": \"\(policy)\",")
            return try fixture.run(["plan", "--config", configuration] + store + options)
        }
        let withheld = try plan("withhold")
        #expect(withheld.status == 0, "\(withheld.errors)")
        #expect(withheld.output.contains("-- withheld: dropColumn note.draft (2 values)"))
        let allowed = try plan("allow")
        #expect(allowed.output.contains("-- LOSS: the migration drops 2 non-NULL values of note.draft"))
        #expect(allowed.output.contains("-- RISK: removes or changes values"))
        let findings = try #require(
            (try plan("allow", "--json").object()["schema"] as? [String: Any])?["findings"] as? [[String: Any]])
        #expect(findings.first?["severity"] as? String == "losesData")
        #expect(findings.first?["count"] as? Int == 2)
        let before = try fixture.snapshot()
        let refused = try plan("refuse", "--json")
        #expect(refused.status == 78)
        #expect(try refused.failureCode() == "destructiveChanges")
        #expect(
            refused.errors.contains("drops 2 non-NULL values of note.draft")
                || refused.output.contains("drops 2 non-NULL values of note.draft"))
        let configuration = try fixture.configuration("\"destructiveChanges\": \"refuse\",")
        #expect(try fixture.run(["migrate", "--config", configuration] + store).status == 78)
        #expect(try fixture.snapshot() == before)
    }

    @Test("If several processes migrate at once, all succeed and only one of them migrates", arguments: [true, false])
    func migratesOnce(isEncrypted: Bool) throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: isEncrypted)
        let arguments = [
            "migrate", "--json", "--config", try fixture.configuration(), "--directory", fixture.folder.path(""),
            "--key-file", fixture.key,
        ]
        let processes = try (0..<3).map { _ in try ToolProcess(Programs.tool, arguments, in: fixture.folder.path("")) }
        let runs = try processes.map { fixture.checked(try $0.finish()) }
        for run in runs { #expect(run.status == 0, "\(run.errors)") }
        let migrations = try runs.map { try #require(try $0.object()["migration"] as? [String: Any]) }
        #expect(migrations.compactMap { $0["event"] as? String } == ["adopted"])
        let history = try fixture.run(
            "query", fixture.database, "SELECT count(*) AS n FROM cipherstore_history WHERE event = 'adopted'",
            "--csv", "--key-file", fixture.key)
        #expect(history.output == "n\r\n1\r\n")
    }
}
