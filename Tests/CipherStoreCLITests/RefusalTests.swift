internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Files that cannot be processed: each command ends with its exit status, and leaves every file unchanged.
@Suite struct RefusalTests {
    enum Command: String, CaseIterable {
        case inspect, encrypt, verify, query, plan, migrate, history, validate
    }

    /// A file that cannot be processed, and the results of the commands on it.
    struct BadInput: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The code of the failure.
        let code: String
        var commands = Command.allCases
        let make: @Sendable (ToolFixture) throws -> Void
    }

    static let badInputs: [BadInput] = [
        BadInput(testDescription: "missing file", code: "missingFile", commands: [.encrypt, .verify, .query]) { _ in },
        BadInput(testDescription: "directory", code: "notAFile") {
            try FileManager.default.createDirectory(atPath: $0.database, withIntermediateDirectories: false)
        },
        BadInput(testDescription: "text", code: "keyDoesNotFit") {
            try $0.folder.write("Dear diary, nothing of note happened today.\n", to: "app.db")
        },
        BadInput(testDescription: "random bytes", code: "keyDoesNotFit") { fixture in
            let bytes = (0..<9_000).map { _ in UInt8.random(in: .min ... .max) }
            try Data(bytes).write(to: fixture.folder.url.appending(path: "app.db"))
        },
        BadInput(testDescription: "header only", code: "corrupt") {
            try $0.make()
            try $0.truncate(to: 100)
        },
        BadInput(testDescription: "truncated", code: "corrupt") {
            try $0.make()
            try $0.truncate(to: 3 * 4096 + 17)
        },
        BadInput(testDescription: "damaged schema", code: "corrupt") {
            try $0.make()
            try $0.overwrite(at: 100, with: [UInt8](repeating: 0xee, count: 8))
        },
        BadInput(testDescription: "another key", code: "keyDoesNotFit") {
            try $0.make(encrypted: true)
            try $0.keys.write("x'\(ToolFixture.otherRawKey)'", to: "key")
        },
        BadInput(testDescription: "another key, rows in the -wal", code: "keyDoesNotFit") {
            try $0.makeWithLiveLog(encrypted: true)
            try $0.keys.write("x'\(ToolFixture.otherRawKey)'", to: "key")
        },
        BadInput(
            testDescription: "stale plaintext -wal beside an encrypted file", code: "staleSidecar",
            commands: Command.allCases.filter { $0 != .inspect }
        ) {
            try $0.makeWithLiveLog()
            try FileManager.default.removeItem(atPath: $0.database)
            let log = try Data(contentsOf: $0.folder.url.appending(path: "app.db-wal"))
            try FileManager.default.removeItem(atPath: $0.database + "-wal")
            try $0.make(encrypted: true)
            try log.write(to: $0.folder.url.appending(path: "app.db-wal"))
        },
        BadInput(testDescription: "key file missing", code: "keyUnavailable") {
            try $0.makeWithLiveLog(encrypted: true)
            try FileManager.default.removeItem(atPath: $0.key)
        },
        BadInput(testDescription: "key file empty", code: "keyMalformed") {
            try $0.makeWithLiveLog(encrypted: true)
            try $0.keys.write("\n", to: "key")
        },
        BadInput(testDescription: "key malformed", code: "keyMalformed") {
            try $0.makeWithLiveLog(encrypted: true)
            try $0.keys.write("x'12", to: "key")
        },
        BadInput(testDescription: "key file readable by others", code: "keyFileInsecure") {
            try $0.makeWithLiveLog(encrypted: true)
            try $0.keys.write("x'\(ToolFixture.rawKey)'", to: "key", mode: 0o644)
        },
    ]

    static let statuses: [String: Int32] = [
        "missingFile": 66, "notAFile": 65, "keyDoesNotFit": 65, "corrupt": 65, "staleSidecar": 65, "keyUnavailable": 66,
        "keyMalformed": 65, "keyFileInsecure": 77, "saltMissing": 65, "missingCollation": 78, "busy": 75,
        "noSpace": 73, "permission": 77,
    ]

    private func arguments(_ command: Command, _ fixture: ToolFixture) throws -> [String] {
        let key = ["--key-file", fixture.key, "--json"]
        switch command {
        case .inspect, .verify, .encrypt: return [command.rawValue, fixture.database] + key
        case .query: return ["query", fixture.database, "SELECT count(*) FROM note"] + key
        case .plan, .migrate, .history, .validate:
            return [
                command.rawValue, "--config", try fixture.configuration(), "--directory", fixture.folder.path(""),
            ] + key
        }
    }

    private func expectRefusal(_ command: Command, _ code: String, _ fixture: ToolFixture) throws {
        let before = try fixture.snapshot()
        let run = try fixture.run(arguments(command, fixture))
        #expect(try run.failureCode() == code, "\(command): \(run.errors)")
        #expect(run.status == Self.statuses[code], "\(command): \(run.errors)")
        #expect(run.errors.hasPrefix("cipherstore: "))
        #expect(run.errors.filter { $0 == "\n" }.count == 1)
        #expect(try fixture.snapshot() == before, "\(command) changed the folder")
    }

    @Test(
        "Every command refuses a bad input with one line and its exit code, and nothing is changed",
        arguments: badInputs)
    func badInput(_ input: BadInput) throws {
        let fixture = try ToolFixture()
        try input.make(fixture)
        for command in input.commands { try expectRefusal(command, input.code, fixture) }
    }

    @Test("Every command refuses a file without its salt and leaves it unchanged")
    func salt() throws {
        guard Engine.current.hasCompatibilityPragma else { return }
        let fixture = try ToolFixture()
        let salted = try ToolFixture.parsed(ToolFixture.rawKey + String(repeating: "0a", count: 16))
        try LegacyFile.write(
            fixture.database, key: salted, settings: CipherSettings(plaintextHeaderSize: 32), script: ToolFixture.script
        )
        for command in [Command.inspect, .encrypt, .verify, .query, .migrate] {
            try expectRefusal(command, "saltMissing", fixture)
        }
    }

    @Test("encrypt refuses a missing collation by its name, and verify reports what it skipped because of it")
    func missingCollation() throws {
        let fixture = try ToolFixture()
        try LegacyFile.write(fixture.database) { connection in
            try connection.register(Collation(name: "ByStrokes") { $0.count - $1.count })
            try connection.executeScript(
                "CREATE TABLE t(name TEXT COLLATE ByStrokes); CREATE INDEX t_name ON t(name); INSERT INTO t VALUES ('a')"
            )
        }
        try expectRefusal(.encrypt, "missingCollation", fixture)
        for options in [["encrypt"], ["recover", "--output", fixture.database + "-new"]] {
            let run = try fixture.run(options + [fixture.database, "--key-file", fixture.key])
            #expect(run.errors.contains("ByStrokes"), "\(run.errors)")
            #expect(run.errors.contains("run this operation in the app, with the CipherStore library"), "\(run.errors)")
            #expect(!run.errors.contains("configuration"), "\(run.errors)")
        }

        // Reading needs no collation, and a check reports what it left out.
        let verify = try fixture.run("verify", fixture.database)
        #expect(verify.status == 0)
        #expect(verify.errors.contains("ByStrokes"))
    }

    @Test(
        "encrypt reports busy while another program writes, and reading is still possible",
        arguments: ["DELETE", "WAL"])
    func anotherWriter(_ mode: String) throws {
        let fixture = try ToolFixture()
        try fixture.make(mode: mode)
        let holder = try fixture.holdingLock("write", fixture.database)
        let before = try fixture.snapshot()
        let run = try fixture.run(
            "encrypt", fixture.database, "--key-file", fixture.key, "--busy-timeout", "0", "--json")
        #expect(run.status == 75, "\(run.errors)")
        #expect(try run.failureCode() == "busy")
        #expect(try fixture.snapshot() == before)
        // Inspecting the file causes no problem.
        #expect(try fixture.run("inspect", fixture.database).status == 0)
        #expect(try fixture.run("query", fixture.database, "SELECT count(*) FROM note").status == 0)
        #expect(try holder.finish().status == 0)

        #expect(try fixture.run("encrypt", fixture.database, "--key-file", fixture.key).status == 0)
    }

    @Test("encrypt reports busy while another upgrade holds the lock, and nothing is changed")
    func anotherUpgrade() throws {
        let fixture = try ToolFixture()
        try fixture.makeWithLiveLog()
        let holder = try fixture.holdingLock("folder", fixture.folder.path(""))
        let before = try fixture.snapshot()
        let run = try fixture.run(
            "encrypt", fixture.database, "--key-file", fixture.key, "--lock-timeout", "0", "--json")
        #expect(run.status == 75)
        #expect(try run.failureCode() == "busy")
        #expect(try fixture.snapshot() == before)
        _ = try holder.finish()
    }

    @Test(
        "A limit on file sizes is reported as a lack of space, and nothing is changed",
        arguments: ["encrypt", "backup", "recover"])
    func noRoom(command: String) throws {
        let fixture = try ToolFixture()
        try fixture.makeWithLiveLog(encrypted: command != "encrypt")
        let before = try fixture.snapshot()
        let output =
            command == "backup"
            ? ["--output", fixture.folder.path("backup.db")] : command == "recover" ? ["--in-place"] : []
        let run = try fixture.run(
            shell: "ulimit -f 16; exec \"$@\"",
            [command, fixture.database, "--key-file", fixture.key, "--json"] + output)
        #expect(run.status == 73, "\(run.errors)")
        #expect(try run.failureCode() == "noSpace")
        #expect(try fixture.snapshot() == before)
    }

    @Test("An opening that has no room for the copies of a damaged log is refused, and nothing is changed")
    func noRoomForDamagedLog() throws {
        let fixture = try ToolFixture()
        try fixture.makeWithLiveLog(encrypted: true)
        try DamagedLog.damage(fixture.database + "-wal")
        let before = try fixture.snapshot()
        let run = try fixture.run(
            // Enough for the index of the log.
            shell: "ulimit -f 100; exec \"$@\"",
            [
                "migrate", "--config", fixture.configuration(), "--directory", fixture.folder.path(""), "--key-file",
                fixture.key, "--json",
            ])
        #expect(run.status == 73, "\(run.errors)")
        #expect(try run.failureCode() == "noSpace")
        #expect(run.output.contains("the required copies of the database and its -wal need"), "\(run.output)")
        #expect(try fixture.snapshot() == before)
    }

    @Test(
        "A folder without write permission is refused, and nothing is changed",
        .enabled(if: UnprivilegedRun.isPossible))
    func folderNotWritable() throws {
        let fixture = try ToolFixture()
        try fixture.makeWithLiveLog()
        let before = try fixture.snapshot()
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: fixture.folder.path(""))
        defer {
            #expect(throws: Never.self) {
                try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: fixture.folder.path(""))
            }
        }
        let run = try fixture.run(
            shell: UnprivilegedRun.script, ["encrypt", fixture.database, "--key-file", fixture.key, "--json"])
        #expect(run.status == 77, "\(run.errors)")
        #expect(try run.failureCode() == "permission")
        #expect(try fixture.snapshot() == before)
    }
}

/// How a run respects the permissions of files, even if the tests run as root.
enum UnprivilegedRun {
    static let script =
        geteuid() == 0 ? "exec setpriv --bounding-set=-dac_override,-dac_read_search -- \"$@\"" : "exec \"$@\""

    static let isPossible: Bool = {
        let probe = try? ToolRun.run("/bin/sh", ["-c", script, "sh", "true"])
        return probe?.status == 0
    }()
}
