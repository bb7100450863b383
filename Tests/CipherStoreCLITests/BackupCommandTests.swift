internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Backup and restore with the command-line tool.
@Suite struct BackupCommandTests {
    private func count(_ fixture: ToolFixture, _ path: String, _ key: String) throws -> String {
        try fixture.run("query", path, "SELECT count(*) FROM note", "--csv", "--key-file", key).output
    }

    @Test("A backup is made, verified, restored and reported, and files in use, existing or missing are refused")
    func roundTrip() throws {
        let fixture = try ToolFixture()
        try fixture.makeWithLiveLog(encrypted: true)
        let output = fixture.folder.path("backup.db")
        let made = try fixture.run(
            "backup", fixture.database, "--output", output, "--key-file", fixture.key, "--json")
        #expect(made.status == 0, "\(made.errors)")
        #expect(try made.object()["outcome"] as? String == "backedUp")
        #expect(try made.object()["rows"] as? Int == 400)
        #expect(try fixture.run("verify", output, "--key-file", fixture.key).status == 0)
        let before = try fixture.snapshot()
        let taken = try fixture.run(
            "backup", fixture.database, "--output", output, "--key-file", fixture.key, "--json")
        #expect(taken.status == 73)
        #expect(try taken.failureCode() == "nameTaken")
        let nowhere = try fixture.run(
            "backup", fixture.database, "--output", fixture.folder.path("none/backup.db"), "--key-file", fixture.key,
            "--json")
        #expect(nowhere.status == 66)
        let wrong = try fixture.run(
            "restore", output, "--into", fixture.database, "--key-file", fixture.otherKey, "--json")
        #expect(wrong.status == 65)
        #expect(try wrong.failureCode() == "keyDoesNotFit")
        #expect(try fixture.snapshot() == before)

        let emptied = try Connection(
            path: fixture.database, mode: .readWrite, key: ToolFixture.parsed(ToolFixture.rawKey),
            settings: CipherSettings())
        try emptied.execute("DELETE FROM note")
        emptied.close()
        let restored = try fixture.run("restore", output, "--into", fixture.database, "--key-file", fixture.key)
        #expect(restored.status == 0, "\(restored.errors)")
        #expect(restored.output.contains("restored") && restored.output.contains("400 rows: every value"))
        #expect(try count(fixture, fixture.database, fixture.key).contains("400"))
    }

    @Test("A backup with its own key is restored to a missing database, with the database's key")
    func ownKey() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let output = fixture.folder.path("backup.db")
        let keyless = try fixture.run("backup", fixture.database, "--output", output, "--json")
        #expect(keyless.status == 65)
        #expect(try keyless.failureCode() == "unexpectedPlaintext")
        let made = try fixture.run(
            "backup", fixture.database, "--output", output, "--new-key-file", fixture.otherKey)
        #expect(made.status == 0, "\(made.errors)")
        #expect(made.output.contains("backup"))
        let database = fixture.folder.path("restored.db")
        let restored = try fixture.run(
            "restore", output, "--into", database, "--key-file", fixture.key, "--backup-key-file", fixture.otherKey,
            "--json")
        #expect(restored.status == 0, "\(restored.errors)")
        #expect(try restored.object()["outcome"] as? String == "restored")
        #expect(try count(fixture, database, fixture.key).contains("400"))
    }

    @Test("A format without a separate key, and a command without its file, are usage errors")
    func usage() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true)
        let format = try fixture.run(
            "backup", fixture.database, "--output", fixture.folder.path("b"), "--key-file", fixture.key,
            "--cipher-compatibility", "3")
        #expect(format.status == 64)
        #expect(try fixture.run("backup", fixture.database, "--key-file", fixture.key).status == 64)
        #expect(try fixture.run("restore", fixture.database, "--key-file", fixture.key).status == 64)
        #expect(try fixture.folder.names == ["app.db"])
    }
}
