internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Changes of the key and the format with the command-line tool.
@Suite struct KeyChangeTests {
    private func third(_ fixture: ToolFixture) throws -> String {
        try fixture.keys.write(ToolFixture.passphrase, to: "third")
    }

    private func opens(_ fixture: ToolFixture, _ key: String) throws -> Bool {
        let run = try fixture.run("query", fixture.database, "SELECT count(*) FROM note", "--csv", "--key-file", key)
        #expect(run.status == 0 || run.status == 65, "\(run.errors)")
        return run.output.contains("400")
    }

    @Test("rekey changes nothing if the keys are equal, the old one is wrong or the new one is missing")
    func refusals() throws {
        let fixture = try ToolFixture()
        try fixture.makeWithLiveLog(encrypted: true)
        let third = try third(fixture)
        let before = try fixture.snapshot()
        let cases = [
            (fixture.key, fixture.key, "keyUnchanged", Int32(65)), (third, fixture.otherKey, "keyDoesNotFit", 65),
            (fixture.key, fixture.keys.path("none"), "keyUnavailable", 66),
            (fixture.keys.path("none"), fixture.otherKey, "keyDoesNotFit", 65),
        ]
        for (old, new, code, status) in cases {
            let run = try fixture.run(
                "rekey", fixture.database, "--key-file", old, "--new-key-file", new, "--json")
            #expect(run.status == status, "\(run.errors)")
            #expect(try run.failureCode() == code)
            #expect(try fixture.snapshot() == before)
        }
    }

    @Test("If several processes change the key at once, one succeeds and the file is intact")
    func race() throws {
        let fixture = try ToolFixture()
        try fixture.make(encrypted: true, mode: "WAL")
        let third = try third(fixture)
        let processes = try [fixture.otherKey, third, fixture.otherKey, third].map {
            try ToolProcess(
                Programs.tool, ["rekey", fixture.database, "--key-file", fixture.key, "--new-key-file", $0, "--json"])
        }
        let runs = try processes.map { try fixture.checked($0.finish()) }
        let winners = try runs.filter { try $0.status == 0 && $0.object()["outcome"] as? String == "rekeyed" }
        #expect(winners.count == 1)
        for run in runs where run.status == 0 {
            #expect(["rekeyed", "alreadyRekeyed"].contains(try run.object()["outcome"] as? String))
        }
        for run in runs where run.status != 0 { #expect(try run.failureCode() == "keyDoesNotFit") }
        #expect(runs.filter { $0.status == 0 }.count == 2)
        #expect(try !opens(fixture, fixture.key))
        #expect(try opens(fixture, fixture.otherKey) != opens(fixture, third))
        let leftovers = try fixture.folder.names.filter { !["-wal", "-shm"].contains($0.dropFirst("app.db".count)) }
        #expect(leftovers == ["app.db"])
    }

    @Test("A format that differs from the defaults is written, must be specified, and can be changed back")
    func ownFormat() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let key = try third(fixture)
        let odd =
            Engine.current.defaultCompatibility >= 4
            ? "4,page-size=8192,kdf-iterations=1000,hmac=sha256,kdf=sha1" : "3,page-size=8192,kdf-iterations=1000"
        let encrypted = try fixture.run(
            "encrypt", fixture.database, "--key-file", key, "--cipher-compatibility", odd)
        #expect(encrypted.status == 0, "\(encrypted.errors)")
        #expect(try fixture.run("verify", fixture.database, "--key-file", key, "--detect").status == 65)
        let verified = try fixture.run(
            "verify", fixture.database, "--key-file", key, "--cipher-compatibility", odd)
        #expect(verified.status == 0, "\(verified.errors)")
        #expect(try fixture.run("rekey", fixture.database, "--key-file", key).status == 65)
        let rekeyed = try fixture.run(
            "rekey", fixture.database, "--key-file", key, "--old-cipher-compatibility", odd, "--json")
        #expect(try rekeyed.object()["outcome"] as? String == "rekeyed")
        #expect(try opens(fixture, key))
    }

    @Test(
        "A malformed format is a usage error",
        arguments: [
            "3,page-size", "3,page-size=", "3,page-size=x", "3,pagesize=4096", "3,", "3,kdf=md5", "3,page-size=1000",
            "3,hmac=sha512", "3,kdf-iterations=0",
        ])
    func wrongFormat(text: String) throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let before = try fixture.snapshot()
        let run = try fixture.run(
            "encrypt", fixture.database, "--key-file", fixture.key, "--cipher-compatibility", text)
        #expect(run.status == 64, "\(run.errors)")
        #expect(run.errors.contains("--cipher-compatibility"))
        #expect(try fixture.snapshot() == before)
    }

    @Test(
        "encrypt writes a readable header, rekey keeps or drops it, and the key must contain a salt",
        .enabled(if: Engine.current.defaultCompatibility >= 4))
    func readableHeader() throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let salted = try fixture.keys.write("x'" + String(repeating: "5a", count: 48) + "'", to: "salted")
        func startsReadable() throws -> Bool {
            try Data(contentsOf: URL(filePath: fixture.database)).starts(with: Data("SQLite format 3".utf8))
        }
        let before = try fixture.snapshot()
        let refused = try fixture.run(
            "encrypt", fixture.database, "--key-file", fixture.key, "--plaintext-header", "32", "--json")
        #expect(refused.status == 65)
        #expect(try refused.failureCode() == "saltMissing")
        let shadow = try fixture.run(
            "encrypt", fixture.database, "--key-file", salted, "--plaintext-header", "32", "--shadow")
        #expect(shadow.status == 0, "\(shadow.errors)")
        #expect(try fixture.snapshot() == before)
        for arguments in [
            ["encrypt", fixture.database, "--key-file", salted, "--plaintext-header", "32"],
            ["rekey", fixture.database, "--key-file", salted],
            ["rekey", fixture.database, "--key-file", salted, "--plaintext-header", "32"],
        ] {
            let run = try fixture.run(arguments)
            #expect(run.status == 0, "\(run.errors)")
            #expect(try startsReadable() == arguments.contains("32"))
            for command in ["verify", "inspect"] {
                #expect(try fixture.run(command, fixture.database, "--key-file", salted).status == 0)
            }
            #expect(try opens(fixture, salted))
        }
    }
}
