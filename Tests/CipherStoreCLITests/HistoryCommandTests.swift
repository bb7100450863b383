internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The commands that read and write the history.
@Suite struct HistoryCommandTests {
    private func store(_ fixture: ToolFixture) throws -> [String] {
        [
            "--config", try fixture.configuration(), "--directory", fixture.folder.path(""), "--key-file", fixture.key,
        ]
    }

    private func change(_ fixture: ToolFixture, _ script: String) throws {
        let connection = try Connection(
            path: fixture.database, mode: .readWrite, key: ToolFixture.parsed(ToolFixture.rawKey),
            settings: CipherSettings())
        defer { connection.close() }
        try connection.executeScript(text: script)
    }

    private func items(_ run: ToolRun) throws -> [String] {
        let items = try #require(try run.object()["items"] as? [[String: Any]])
        return items.map { item in
            ["state", "kind", "name"].compactMap { item[$0] as? String }.joined(separator: " ")
        }
    }

    @Test("history lists what is pending before a migration and what was done after it, and changes nothing")
    func historyOfAMigration() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let store = try store(fixture)
        let before = try fixture.snapshot()
        let legacy = try fixture.run(["history", "--json"] + store)
        #expect(legacy.status == 0, "\(legacy.errors)")
        #expect(try items(legacy) == ["pending version schema"])
        #expect(try legacy.object()["version"] as? String == "23")
        #expect(try fixture.snapshot() == before)

        #expect(try fixture.run(["migrate"] + store).status == 0)
        let migrated = try fixture.snapshot()
        let run = try fixture.run(["history", "--json"] + store)
        #expect(try items(run) == ["applied event encrypted", "applied event adopted"])
        #expect(try run.object()["version"] as? String == "26")
        let text = try fixture.run(["history"] + store)
        #expect(text.status == 0)
        #expect(text.output.contains("version 26"))
        #expect(text.output.contains("adopted"))
        #expect(try fixture.snapshot() == migrated)
    }

    @Test("validate reports drift and changes nothing, and repair records it")
    func driftIsFoundAndRepaired() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let store = try store(fixture)
        let nothing = try fixture.run(["validate", "--json"] + store)
        #expect(nothing.status == 65)
        #expect(try nothing.failureCode() == "migration")
        #expect(try fixture.run(["migrate"] + store).status == 0)
        let valid = try fixture.run(["validate"] + store)
        #expect(valid.status == 0, "\(valid.errors)")
        #expect(valid.output.hasPrefix("valid: "))

        try change(
            fixture, "DROP INDEX note_body; CREATE VIEW v AS SELECT id FROM note; ALTER TABLE label ADD COLUMN x")
        let before = try fixture.snapshot()
        let drifted = try fixture.run(["validate"] + store)
        #expect(drifted.status == 65)
        #expect(
            drifted.output.split(separator: "\n").sorted() == [
                "index note_body is missing", "table label: column x is not recorded", "view v is not recorded",
            ])
        #expect(drifted.errors.contains("3 differences"))
        let machine = try fixture.run(["validate", "--json"] + store)
        #expect(machine.status == 65)
        #expect(try machine.object()["isValid"] as? Bool == false)
        #expect(try (machine.object()["differences"] as? [[String: Any]])?.count == 3)
        #expect(try fixture.snapshot() == before)

        let repaired = try fixture.run(["repair", "--json"] + store)
        #expect(repaired.status == 0, "\(repaired.errors)")
        #expect(try repaired.object()["event"] as? String == "repaired")
        #expect(try (repaired.object()["details"] as? [String])?.count == 3)
        #expect(try fixture.run(["validate"] + store).status == 0)
        let again = try fixture.run(["repair"] + store)
        #expect(again.status == 0)
        #expect(again.output.contains("nothing"))
        #expect(try fixture.run("verify", fixture.database, "--key-file", fixture.key).status == 0)
    }

    @Test("baseline records a version once and runs nothing, and migrate continues from it")
    func baselineOfAnExistingDatabase() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true)
        let store = try store(fixture)
        let later = try fixture.run(["baseline", "--at", "27", "--json"] + store)
        #expect(later.status == 78)
        #expect(try later.failureCode() == "configuration")
        let run = try fixture.run(["baseline", "--at", "25"] + store)
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.output.contains("baselined"))
        #expect(try fixture.run(["validate"] + store).status == 0)
        let columns = ["query", fixture.database, "PRAGMA table_info(note)", "--csv", "--key-file", fixture.key]
        #expect(try !fixture.run(columns).output.contains("pinned"), "nothing is run")
        let again = try fixture.run(["baseline", "--json"] + store)
        #expect(again.status == 65)
        #expect(try again.failureCode() == "migration")
        let migrated = try fixture.run(["migrate", "--json"] + store)
        let report = try #require(try migrated.object()["migration"] as? [String: Any])
        #expect(report["from"] as? String == "25")
        #expect(try fixture.run(columns).output.contains("pinned"))
    }

    @Test("A missing or unencrypted database is refused by name, and nothing is created or changed")
    func whatIsNotThereOrNotReady() throws {
        let fixture = try ToolFixture()
        let store = try store(fixture)
        for command in ["history", "validate", "baseline", "repair"] {
            let run = try fixture.run([command, "--json"] + store)
            #expect(run.status == 66, "\(command)")
            #expect(try run.failureCode() == "missingFile")
        }
        #expect(try fixture.folder.names.isEmpty)
        try fixture.make()
        let before = try fixture.snapshot()
        for command in ["baseline", "repair"] {
            let run = try fixture.run([command, "--json"] + store)
            #expect(run.status == 65)
            #expect(try run.failureCode() == "unexpectedPlaintext")
        }
        #expect(try fixture.snapshot() == before)
    }

    @Test("decrypt and encrypt are in the history, and the app treats a decrypted file as a legacy file")
    func decryptedByHand() throws {
        let fixture = try ToolFixture()
        let store = try store(fixture)
        let key = ["--key-file", fixture.key]
        try fixture.make()
        #expect(try fixture.run(["migrate"] + store).status == 0)
        func events() throws -> [String] {
            let rows = try fixture.run(
                ["query", fixture.database, "SELECT event FROM cipherstore_history ORDER BY id", "--csv"] + key)
            return rows.output.split(whereSeparator: \.isNewline).dropFirst().map(String.init)
        }
        for command in [["encrypt", fixture.database] + key, ["migrate"] + store] {
            let before = try events()
            #expect(try fixture.run(["decrypt", fixture.database] + key).status == 0)
            #expect(try events() == before + ["openedPlaintext"])
            let again = try fixture.run(command)
            #expect(again.status == 0, "\(again.errors)")
            #expect(try events().last == "encrypted")
        }
        // A database that CipherStore does not know gets no table.
        try fixture.make("foreign.db")
        let foreign = fixture.folder.path("foreign.db")
        #expect(try fixture.run(["encrypt", foreign] + key).status == 0)
        #expect(try fixture.run(["decrypt", foreign] + key).status == 0)
        let tables = try fixture.run(["query", foreign, "SELECT name FROM sqlite_master WHERE type = 'table'", "--csv"])
        #expect(!tables.output.contains("cipherstore"))
    }

    @Test("baseline waits for the lock of an upgrade, and reports busy if its timeout expires")
    func waitsForTheUpgradeLock() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true)
        let holder = try fixture.holdingLock("folder", fixture.folder.path(""))
        let run = try fixture.run(["baseline", "--lock-timeout", "0", "--json"] + store(fixture))
        #expect(run.status == 75)
        #expect(try run.failureCode() == "busy")
        _ = try holder.finish()
        #expect(try fixture.run(["baseline"] + store(fixture)).status == 0)
    }
}
