import CipherTestSupport
import Foundation
import Testing

/// Keys in a real gnome-keyring, on a bus that the test starts.
@Suite(.enabled(if: KeyringSession.isPossible, "Scripts/setup --keyring installs what this needs"))
struct SecretServiceTests {
    private let fixture: ToolFixture
    private let session: KeyringSession

    init() throws {
        fixture = try ToolFixture()
        session = try KeyringSession()
    }

    /// Encrypts, and expects a failure that changes nothing and creates no key.
    private func expectRefusal(
        _ code: String, status: Int32, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let before = try fixture.snapshot()
        let run = try session.run("encrypt", fixture.database, "--key-secret-service", "chat", "--json")
        #expect(run.status == status, "\(run.errors)", sourceLocation: sourceLocation)
        #expect(try run.failureCode() == code, sourceLocation: sourceLocation)
        #expect(try fixture.snapshot() == before, sourceLocation: sourceLocation)
    }

    private func rows(_ database: String, _ name: String = "chat") throws -> ToolRun {
        try session.run("query", database, "SELECT count(*) FROM note", "--csv", "--key-secret-service", name)
    }

    @Test("A missing service, a locked one and a missing key are distinguished, and only the last creates a key")
    func threeStates() throws {
        try fixture.makeWithLiveLog()
        try expectRefusal("keyStoreUnavailable", status: 75)

        // The first unlocking creates the keyring.
        try session.start(unlocked: true)
        try session.start(unlocked: false)
        try expectRefusal("keyStoreLocked", status: 75)

        try session.start(unlocked: true)
        #expect(try rows(fixture.database).status == 0, "a plaintext file needs no key")
        let run = try session.run("encrypt", fixture.database, "--key-secret-service", "chat", "--json")
        #expect(run.status == 0, "\(run.errors)")
        #expect(try run.object()["outcome"] as? String == "encrypted")
        #expect(try rows(fixture.database).output.contains("400"))

        try session.start(unlocked: false)
        #expect(try rows(fixture.database).status == 75)
        try session.start(unlocked: true)
        #expect(try rows(fixture.database).output.contains("400"), "the key outlives the service")
    }

    @Test("No key is created for an encrypted file")
    func neverMints() throws {
        try session.start(unlocked: true)
        try fixture.makeWithLiveLog(encrypted: true)
        for _ in 0..<2 { try expectRefusal("keyUnavailable", status: 66) }
        let other = try session.run("inspect", fixture.database, "--key-secret-service", "other", "--json")
        #expect(try other.failureCode() == "keyUnavailable")
    }

    @Test("A key moves from a file to the key store, and is then replaced by a second one with another name")
    func rotation() throws {
        try session.start(unlocked: true)
        try fixture.make(encrypted: true)
        let moved = try session.run(
            "rekey", fixture.database, "--key-file", fixture.key, "--new-key-secret-service", "chat", "--json")
        #expect(try moved.object()["outcome"] as? String == "rekeyed")
        let changed = try session.run(
            "rekey", fixture.database, "--key-secret-service", "chat", "--new-key-secret-service", "chat 2", "--json")
        #expect(try changed.object()["outcome"] as? String == "rekeyed")
        #expect(try rows(fixture.database, "chat 2").output.contains("400"))
        #expect(try rows(fixture.database).status == 65)
    }

    @Test("Processes that create the key at the same moment get the same key")
    func mintedOnce() throws {
        try session.start(unlocked: true)
        let fixtures = try (0..<6).map { _ in try ToolFixture() }
        for fixture in fixtures { try fixture.make() }
        let processes = try fixtures.map {
            try session.begin("encrypt", $0.database, "--key-secret-service", "chat", "--json")
        }
        for process in processes {
            let run = try process.finish()
            #expect(run.status == 0, "\(run.errors)")
        }
        for fixture in fixtures { #expect(try rows(fixture.database).output.contains("400")) }
    }
}
