internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Key files that the run would process or damage, or that hold something other than a key.
struct KeyFileSafetyTests {
    private let fixture: ToolFixture

    init() throws {
        fixture = try ToolFixture()
        for name in ["a1.db", "a2.db", "a3.db"] { try fixture.make(name) }
    }

    private var fleet: [String] { ["encrypt", fixture.folder.path(""), "--recursive", "--json"] }

    /// Runs a command that must be refused without a change to any file.
    private func refused(_ status: Int32, _ code: String, _ arguments: [String]) throws {
        let before = try fixture.snapshot()
        let run = try fixture.run(arguments)
        #expect(run.status == status, "\(run.errors)")
        #expect(try run.failureCode() == code, "\(run.output)")
        #expect(try fixture.snapshot() == before)
    }

    private func makePrivate(_ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    @Test(
        "A database is not a key file, be it plaintext or encrypted, of the run or of another",
        arguments: [false, true])
    func database(encrypted: Bool) throws {
        let inside = fixture.folder.path("a2.db")
        if encrypted {
            try FileManager.default.removeItem(atPath: inside)
            try fixture.make("a2.db", encrypted: true, settings: CipherSettings())
        }
        try makePrivate(inside)
        let outside = fixture.keys.path("other.db")
        try FileManager.default.copyItem(atPath: inside, toPath: outside)
        for path in [inside, outside] { try refused(65, "keyMalformed", fleet + ["--key-file", path]) }
        let one = fixture.folder.path("a1.db")
        for arguments in [
            ["encrypt", one, "--key-file", inside, "--json"],
            ["backup", one, "--output", fixture.folder.path("b.db"), "--new-key-file", inside, "--json"],
            [
                "restore", one, "--into", fixture.folder.path("n.db"), "--key-file", inside, "--plaintext-backup",
                "--json",
            ],
            ["recover", one, "--output", fixture.folder.path("n.db"), "--key-file", inside, "--json"],
        ] {
            try refused(65, "keyMalformed", arguments)
        }
    }

    @Test("The new key and the backup's key are not a database either")
    func otherOptions() throws {
        let plain = fixture.folder.path("a2.db")
        try makePrivate(plain)
        try fixture.make("e.db", encrypted: true)
        let encrypted = fixture.folder.path("e.db")
        try refused(
            65, "keyMalformed", ["rekey", encrypted, "--key-file", fixture.key, "--new-key-file", plain, "--json"])
        try refused(
            65, "keyMalformed",
            [
                "restore", encrypted, "--into", fixture.folder.path("n.db"), "--key-file", fixture.key,
                "--backup-key-file", plain, "--json",
            ])
    }

    @Test("Content other than one line of text is refused in a file, a variable and standard input")
    func content() throws {
        for text in ["one\ntwo\n", "secret\n\n"] {
            let key = try fixture.keys.write(text, to: "lines")
            try refused(65, "keyMalformed", fleet + ["--key-file", key])
            let before = try fixture.snapshot()
            let arguments = ["encrypt", fixture.folder.path("a1.db"), "--json"]
            let typed = try fixture.run(
                shell: "tool=$1; shift; \"$tool\" \"$@\" <'\(key)'", arguments + ["--key-file", "-"])
            let variable = try fixture.run(arguments + ["--key-env", "KEY"], environment: ["KEY": text])
            for run in [typed, variable] {
                #expect(run.status == 65)
                #expect(try run.failureCode() == "keyMalformed")
            }
            #expect(try fixture.snapshot() == before)
        }
    }

    @Test("A text file that the run would process is refused before the first file is changed")
    func processed() throws {
        let key = try fixture.folder.write("a passphrase\n", to: "a4.db")
        let list = try fixture.keys.write("a1.db\na4.db\n", to: "list")
        for more in [[], ["--name", "*.db"], ["--files-from", list]] {
            try refused(66, "keyUnavailable", fleet + ["--key-file", key] + more)
        }
        // Another name of the same file.
        let link = fixture.keys.path("link")
        try FileManager.default.linkItem(atPath: key, toPath: link)
        try refused(66, "keyUnavailable", fleet + ["--key-file", link])
    }

    @Test(
        "A key file with a name that SQLite uses beside one of the databases is refused before the first is changed",
        arguments: ["a3.db-wal", "a3.db-journal", "a3.db-plaintext"])
    func sidecar(_ name: String) throws {
        let key = try fixture.folder.write("a passphrase\n", to: name)
        try refused(73, "nameTaken", fleet + ["--key-file", key])
    }

    @Test("A template that names a file of the run for a later database is refused before the first is changed")
    func template() throws {
        let key = try fixture.folder.write("a passphrase\n", to: "key.db")
        for name in ["a1", "a2", "a3"] {
            let path = fixture.keys.path("\(name).key")
            if name == "a3" {
                try FileManager.default.linkItem(atPath: key, toPath: path)
            } else {
                try FileManager.default.copyItem(atPath: fixture.key, toPath: path)
            }
        }
        try refused(66, "keyUnavailable", fleet + ["--key-file", fixture.keys.path("{name}.key")])
    }

    @Test("A key file in the folder that the run does not process is used")
    func beside() throws {
        let key = try fixture.folder.write("a passphrase\n", to: "secret")
        let run = try fixture.run(fleet + ["--key-file", key])
        #expect(run.status == 0, "\(run.errors)")
        #expect(try FleetLines(run).summary["done"] == 3)
    }
}
