import CipherPlatform
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// A command on every database below a folder.
@Suite struct FleetTests {
    private typealias Fixture = FleetFixture

    @Test("Every database is encrypted, whatever its name and folder, and the next run finds all of them done")
    func encrypts() throws {
        let fixture = try Fixture()
        try fixture.tool.makeWithLiveLog()
        for path in ["a.db", "inner/deep/b.sqlite", "inner/no-ending", "c.db"] { try fixture.make(path) }
        try fixture.tool.make("c-encrypted.db", encrypted: true)
        try fixture.tool.folder.write("Dear diary\n", to: "diary.txt")
        try fixture.tool.folder.write("", to: "empty.txt")
        try fixture.tool.folder.write("a spent log", to: "a.db-journal.old")
        let run = try fixture.run("encrypt", "--jobs", "2")
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.errors.isEmpty, "no progress without a terminal")
        let lines = try FleetLines(run)
        #expect(
            lines.outcomes == [
                "a.db": "encrypted", "app.db": "encrypted", "c.db": "encrypted", "c-encrypted.db": "alreadyEncrypted",
                "inner/deep/b.sqlite": "encrypted", "inner/no-ending": "encrypted",
            ])
        #expect(
            lines.summary == [
                "databases": 6, "done": 5, "unchanged": 1, "failed": 0, "skipped": 0, "left": 0, "plaintext": 0,
            ])
        let report = try #require(lines["app.db"]?["report"] as? [String: Any])
        #expect(report["rows"] as? Int == 400)

        let again = try FleetLines(try fixture.run("encrypt"))
        #expect(Set(again.outcomes.values) == ["alreadyEncrypted"])
        #expect(
            again.summary == [
                "databases": 6, "done": 0, "unchanged": 6, "failed": 0, "skipped": 0, "left": 0, "plaintext": 0,
            ])
        #expect(try fixture.run("verify").status == 0)
    }

    @Test("Locked, damaged and foreign files fail separately, stay unchanged, and are counted in the exit status")
    func failures() throws {
        let fixture = try Fixture()
        for name in ["a.db", "damaged.db", "held.db", "z.db"] { try fixture.make(name) }
        try fixture.tool.overwrite("damaged.db", at: 4 * 4096 + 3, with: [0xff, 0xff, 0xff, 0xff])
        try Data((0..<8192).map { _ in UInt8.random(in: .min ... .max) })
            .write(to: fixture.tool.folder.url.appending(path: "foreign.db"))
        let before = try fixture.tool.snapshot()
        let holder = try fixture.tool.holdingLock("write", fixture.tool.folder.path("held.db"))
        let run = try fixture.run("encrypt", "--busy-timeout", "0")
        #expect(run.status == 3)
        let lines = try FleetLines(run)
        #expect(
            lines.outcomes == [
                "a.db": "encrypted", "damaged.db": "failed", "foreign.db": "failed", "held.db": "failed",
                "z.db": "encrypted",
            ])
        #expect(lines.errorCodes == ["damaged.db": "corrupt", "foreign.db": "keyDoesNotFit", "held.db": "busy"])
        let error = try #require(lines["damaged.db"]?["error"] as? [String: Any])
        #expect(error["stage"] as? String == "building")
        for name in ["damaged.db", "foreign.db", "held.db"] {
            #expect(run.errors.contains(name))
            #expect(try fixture.tool.snapshot()[name] == before[name], "\(name)")
        }
        _ = try holder.finish()
        let again = try fixture.run("encrypt")
        #expect(again.status == 2)
        #expect(try FleetLines(again).outcomes["held.db"] == "encrypted")
        #expect(try fixture.tool.folder.names == ["a.db", "damaged.db", "foreign.db", "held.db", "z.db"])
    }

    @Test("The exit status counts failures up to 63, because higher numbers have other meanings")
    func manyFailures() throws {
        let fixture = try Fixture()
        for number in 0..<70 { try fixture.tool.folder.write("Dear diary\n", to: "\(number).db") }
        let run = try fixture.run("encrypt")
        #expect(run.status == 63)
        #expect(try FleetLines(run).summary["failed"] == 70)
        #expect(run.errors.contains("70 of 70 databases failed"))
    }

    @Test("One of several hard links to a file is processed, and symbolic links are not followed")
    func links() throws {
        let fixture = try Fixture()
        try fixture.make("a.db")
        let manager = FileManager.default
        try manager.linkItem(
            atPath: fixture.tool.folder.path("a.db"), toPath: fixture.tool.folder.path("b.db"))
        try manager.createSymbolicLink(
            atPath: fixture.tool.folder.path("link.db"), withDestinationPath: "a.db")
        try manager.createSymbolicLink(
            atPath: fixture.tool.folder.path("loop"), withDestinationPath: ".")
        let run = try fixture.run("encrypt")
        #expect(run.status == 0)
        let lines = try FleetLines(run)
        #expect(lines.outcomes == ["a.db": "encrypted", "b.db": "skipped", "link.db": "skipped"])
        #expect((lines["b.db"]?["reason"] as? String)?.contains("a.db") == true)
        #expect(run.errors.contains("still readable through"))
    }

    @Test("Databases with names like sidecars are encrypted, but one beside another database is a failure")
    func sidecarNames() throws {
        let fixture = try Fixture()
        let names = ["notes-plaintext", "chat-wal", "my-journal", "x-attempt", "team-shm", "data-upgrade"]
        for name in names + ["app.db", "app.db-plaintext"] { try fixture.make(name) }
        let before = try fixture.tool.snapshot()["app.db-plaintext"]
        let run = try fixture.run("encrypt")
        #expect(run.status == 1)
        let lines = try FleetLines(run)
        let expected = Dictionary(uniqueKeysWithValues: (names + ["app.db"]).map { ($0, "encrypted") })
        #expect(lines.outcomes == expected.merging(["app.db-plaintext": "failed"]) { $1 })
        #expect(lines.errorCodes == ["app.db-plaintext": "besideDatabase"])
        #expect(lines.summary["databases"] == 8 && lines.summary["failed"] == 1)
        #expect(try fixture.tool.snapshot()["app.db-plaintext"] == before)
        #expect(try fixture.run("encrypt", "--name", "app.db").status == 0)
    }

    @Test("A database named like an upgrade's copy stays, and is a failure beside the database of that name")
    func foreignCopy() throws {
        let fixture = try Fixture()
        try fixture.make("app.db")
        try fixture.tool.make("app.db-upgrade-0123456789abcdef", encrypted: true)
        let before = try fixture.tool.snapshot()["app.db-upgrade-0123456789abcdef"]
        let run = try fixture.run("encrypt")
        #expect(run.status == 1)
        #expect(
            try FleetLines(run).outcomes == ["app.db": "encrypted", "app.db-upgrade-0123456789abcdef": "failed"])
        #expect(try fixture.tool.snapshot()["app.db-upgrade-0123456789abcdef"] == before)
    }

    @Test(
        "A file or folder that is replaced by a link before its turn does not lead out of the folder",
        arguments: ["b/app.db", "b"], [["encrypt"], ["migrate"], ["rekey"]])
    func swapped(_ name: String, _ command: [String]) throws {
        let fixture = try Fixture()
        let outside = try ToolFixture()
        for tool in [fixture.tool, outside] {
            try FileManager.default.createDirectory(atPath: tool.folder.path("b"), withIntermediateDirectories: false)
            try tool.make("b/app.db", encrypted: command == ["rekey"])
        }
        try fixture.make("a/app.db")
        let before = try FolderDigest(outside.folder.url.appending(path: "b"))
        let configuration = command == ["migrate"] ? ["--config", try fixture.tool.configuration()] : []
        let newKey = command == ["rekey"] ? ["--new-key-file", fixture.tool.otherKey] : []
        let tool = try fixture.begunWhileFolderIsHeld("a", command + configuration + newKey)
        try FileManager.default.removeItem(atPath: fixture.tool.folder.path(name))
        try FileManager.default.createSymbolicLink(
            atPath: fixture.tool.folder.path(name), withDestinationPath: outside.folder.path(name))
        let run = try tool.release()
        let lines = try FleetLines(run)
        #expect(lines.errorCodes["b/app.db"] == "busy", "\(run.errors)")
        #expect(try FolderDigest(outside.folder.url.appending(path: "b")) == before)
    }

    @Test("An unreadable folder and an unreadable file are failures, and the other files are done")
    func unreadable() throws {
        let fixture = try Fixture()
        for path in ["a.db", "shut/b.db", "unreadable"] { try fixture.make(path) }
        for name in ["shut", "unreadable"] {
            try FileManager.default.setAttributes(
                [.posixPermissions: 0], ofItemAtPath: fixture.tool.folder.path(name))
        }
        let asOthers =
            geteuid() == 0 ? "exec setpriv --bounding-set=-dac_override,-dac_read_search -- \"$@\"" : "exec \"$@\""
        let run = try fixture.tool.run(
            shell: asOthers,
            ["encrypt", fixture.tool.folder.path(""), "--recursive", "--json", "--key-file", fixture.tool.key])
        for name in ["shut", "unreadable"] {
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o700], ofItemAtPath: fixture.tool.folder.path(name))
        }
        #expect(run.status == 2, "\(run.errors)")
        let lines = try FleetLines(run)
        #expect(lines.outcomes == ["a.db": "encrypted", "shut": "failed", "unreadable": "failed"])
        #expect(lines.errorCodes == ["shut": "permission", "unreadable": "permission"])
    }

    @Test(
        "A file that vanishes before its turn is a failure, and no database is created in its place",
        arguments: [false, true])
    func vanishes(migrates: Bool) throws {
        let fixture = try Fixture()
        try fixture.make("a/app.db")
        try fixture.make("b/app.db")
        let tool = try fixture.begunWhileFolderIsHeld(
            "a", migrates ? ["migrate", "--config", fixture.tool.configuration()] : ["encrypt"])
        try FileManager.default.removeItem(atPath: fixture.tool.folder.path("b/app.db"))
        let run = try tool.release()
        #expect(run.status == 1, "\(run.errors)")
        let lines = try FleetLines(run)
        #expect(lines.outcomes == ["a/app.db": "encrypted", "b/app.db": "failed", "link.db": "skipped"])
        #expect(lines.errorCodes == ["b/app.db": "missingFile"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.tool.folder.path("b")) == [])
    }

    #if os(Linux)
        @Test(
            "A signal restores the files in progress, begins no other file, and reports how many are left",
            arguments: [SIGINT, SIGTERM])
        func signal(_ number: Int32) throws {
            let fixture = try Fixture()
            for path in ["a/app.db", "b/app.db", "c/app.db"] { try fixture.make(path) }
            let before = try fixture.rows()
            let tool = try fixture.begunWhileFolderIsHeld("a", ["encrypt"])
            #expect(kill(tool.process.identifier, number) == 0)
            let run = try fixture.tool.checked(tool.process.finish())
            _ = try tool.holder.finish()
            #expect(run.status == 128 + number, "\(run.errors)")
            let lines = try FleetLines(run)
            #expect(lines.summary["left"] == 3)
            #expect(run.errors.contains("3 of 3 databases were left"))
            #expect(try fixture.rows() == before)
            #expect(try fixture.run("encrypt").status == 0)
        }
    #endif

    @Test("Two runs over one folder share the work, and both succeed")
    func twoAtOnce() throws {
        let fixture = try Fixture()
        for number in 0..<12 { try fixture.make("\(number).db") }
        let arguments = ["encrypt"] + fixture.common + ["--jobs", "2"]
        let fleets = try (0..<2).map { _ in try ToolProcess(Programs.tool, arguments) }
        let runs = try fleets.map { try FleetLines(try fixture.tool.checked($0.finish())) }
        #expect(runs.map { $0.summary["failed"] } == [0, 0])
        #expect(runs.reduce(0) { $0 + ($1.summary["done"] ?? 0) } == 12)
        #expect(runs.reduce(0) { $0 + ($1.summary["unchanged"] ?? 0) } == 12)
        #expect(try fixture.run("verify").status == 0)
        #expect(try fixture.tool.folder.names.count == 12)
    }

    @Test("Each database may have its own key file, found by its name or its folder's name")
    func keys() throws {
        let fixture = try Fixture()
        for path in ["anna.db", "ben.db", "carl.db"] { try fixture.make(path) }
        let keys = fixture.tool.keys
        for name in ["anna", "ben"] { try fixture.tool.run("keygen", keys.path("\(name).key")) }
        let template = ["--key-file", keys.path("{name}.key")]
        let encrypt = try fixture.run(["encrypt", fixture.tool.folder.path(""), "--recursive", "--json"] + template)
        #expect(encrypt.status == 1)
        #expect(try FleetLines(encrypt).errorCodes == ["carl.db": "keyUnavailable"])
        let anna = ["verify", fixture.tool.folder.path("anna.db"), "--key-file"]
        #expect(try fixture.run(anna + [keys.path("anna.key")]).status == 0)
        #expect(try fixture.run(anna + [keys.path("ben.key")]).status == 65)

        try fixture.make("dora/app.db")
        try fixture.tool.run("keygen", keys.path("dora"))
        let dora = try fixture.run([
            "encrypt", fixture.tool.folder.path("dora"), "--recursive", "--json", "--key-file", keys.path("{folder}"),
        ])
        #expect(dora.status == 0, "\(dora.errors)")
    }

    @Test("rekey, verify and migrate process each file of a fleet like a single file")
    func otherCommands() throws {
        let fixture = try Fixture()
        for path in ["a/app.db", "b/app.db", "b/other.db"] { try fixture.make(path) }
        let migrate = ["migrate", "--config", try fixture.tool.configuration()]
        let migrated = try FleetLines(try fixture.run(migrate))
        // Only files with the configuration's database name.
        #expect(migrated.outcomes == ["a/app.db": "encrypted", "b/app.db": "encrypted"])
        #expect(Set(try FleetLines(try fixture.run(migrate)).outcomes.values) == ["opened"])
        let other = try FleetLines(try fixture.run(migrate + ["--name", "o*.db"]))
        #expect(other.outcomes == ["b/other.db": "encrypted"])

        let rekey = ["rekey", "--new-key-file", fixture.tool.otherKey]
        #expect(Set(try FleetLines(try fixture.run(rekey)).outcomes.values) == ["rekeyed"])
        let rekeyed = try FleetLines(try fixture.run(rekey))
        #expect(Set(rekeyed.outcomes.values) == ["alreadyRekeyed"])
        #expect(rekeyed.summary["unchanged"] == 3)
        let verify = ["verify", fixture.tool.folder.path(""), "--recursive", "--json", "--key-file"]
        #expect(try fixture.run(verify + [fixture.tool.otherKey]).status == 0)
        #expect(try fixture.run(verify + [fixture.tool.key]).status == 3)
        try fixture.make("missed.db")
        let words = try fixture.tool.run(verify.filter { $0 != "--json" } + [fixture.tool.otherKey])
        #expect(words.status == 0 && words.output.contains("1 not encrypted; see the warnings on standard error"))
        #expect(words.errors.contains("missed.db: this file is not encrypted"), "\(words.errors)")
        try fixture.tool.overwrite("a/app.db", at: 5 * CipherSettings().pageSize + 3, with: [0xff, 0xff, 0xff, 0xff])
        let damaged = try fixture.run(verify + [fixture.tool.otherKey])
        #expect(damaged.status == 1)
        #expect(try FleetLines(damaged).outcomes["a/app.db"] == "damaged")
    }

    @Test(
        "migrate --name does not use or remove a database just because it has the name of another database's copy",
        arguments: ["", #", "leftover": "copy""#])
    func copyName(leftover: String) throws {
        let fixture = try Fixture()
        for path in ["bob.db", "bobTemp.db", "template.sqlite"] { try fixture.make(path) }
        try fixture.tool.folder.write(
            #"{"dbName": "bob.db", "dbVersion": 23, "recordedVersion": {"source": "userVersion"}, "#
                + #""template": {"file": "template.sqlite"\#(leftover)}, "encryption": {"enabled": true}}"#,
            to: "app.json")
        let run = try fixture.run(
            "migrate", "--config", fixture.tool.folder.path("app.json"), "--name", "*.db", "--jobs", "1")
        #expect(try FleetLines(run).outcomes == ["bob.db": "encrypted", "bobTemp.db": "encrypted"], "\(run.errors)")
        #expect(try fixture.tool.folder.names.contains("bobTemp.db"))
    }

    @Test("A shadow proof of a fleet changes nothing")
    func shadow() throws {
        let fixture = try Fixture()
        try fixture.tool.makeWithLiveLog()
        try fixture.make("b.db")
        let before = try fixture.tool.snapshot()
        let run = try fixture.run("encrypt", "--shadow")
        #expect(run.status == 0, "\(run.errors)")
        #expect(Set(try FleetLines(run).outcomes.values) == ["shadow"])
        let after = try fixture.tool.snapshot()
        #expect(after == before)
    }

    @Test("Without --json, a fleet prints one line of progress and a summary")
    func people() throws {
        let fixture = try Fixture()
        for path in ["a.db", "b.db"] { try fixture.make(path) }
        let arguments = ["encrypt", fixture.tool.folder.path(""), "--recursive", "--key-file", fixture.tool.key]
        let run = try fixture.run(arguments + ["--progress", "always"])
        #expect(run.errors.contains(" of 2 ["))
        #expect(run.output.contains("encrypted  2\n"))
        let again = try fixture.run(arguments)
        #expect(again.output.contains("2 already done"))
        #expect(again.errors.isEmpty)
    }

    /// Without leases, a process keeps each file that it replaced locked, with six descriptors.
    @Test("A run converts more files than one process can keep locked")
    func many() throws {
        let fixture = try Fixture()
        for number in 0..<12 { try fixture.make("\(number).db") }
        let arguments = ["encrypt"] + fixture.common + ["--jobs", "1"]
        let run = try fixture.tool.run(shell: #"ulimit -n 100; exec "$@""#, arguments)
        #expect(run.status == 0, "\(run.errors)")
        #expect(try FleetLines(run).summary["done"] == 12)
    }

    @Test("A missing folder or a missing common key ends the run before it begins")
    func missing() throws {
        let fixture = try Fixture()
        try fixture.make("a.db")
        let folder = fixture.tool.folder.path("")
        let key = ["--recursive", "--json", "--key-file"]
        #expect(try fixture.run(["encrypt", folder + "none"] + key + [fixture.tool.key]).status == 66)
        let run = try fixture.run(["encrypt", folder] + key + [fixture.tool.keys.path("none")])
        #expect(run.status == 66)
        #expect(try run.failureCode() == "keyUnavailable")
        #expect(try fixture.run("verify").status == 0)
    }
}
