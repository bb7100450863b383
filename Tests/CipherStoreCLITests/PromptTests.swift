import CipherPlatform
import CipherTestSupport
import Foundation
import Testing

/// The key that is typed on a terminal.
struct PromptTests {
    private let fixture: ToolFixture

    init() throws {
        fixture = try ToolFixture()
        try fixture.make()
    }

    private func prompting(_ command: [String], controls: Bool = false) throws -> TerminalRun {
        try TerminalRun(command + ["--key-file", "-"], controls: controls)
    }

    /// Encrypts the database with a passphrase that is typed, in bytes that the terminal edits.
    private func encrypt(typing bytes: [UInt8]) throws -> ToolRun {
        let run = try prompting(["encrypt", fixture.database])
        try run.type(bytes)
        if try run.errorsSoFar.contains("Key: ") { try run.type(bytes, at: "Repeat the key: ") }
        let ended = try run.finish()
        #expect(try run.echoes)
        return ended
    }

    private func opens(_ passphrase: String) throws -> Bool {
        let key = try fixture.keys.write(passphrase, to: "typed")
        return try fixture.run("query", fixture.database, "--key-file", key, "SELECT 1").status == 0
    }

    @Test("The terminal's own keys for erasing a character, a word and the line edit the key")
    func editing() throws {
        // Ctrl-U erases the line, Ctrl-W a word, and DEL a character.
        let typed = Array("wrong".utf8) + [0x15] + Array("one twoo".utf8) + [0x7f] + Array(" three".utf8) + [0x17]
        let run = try encrypt(typing: typed + Array("four\n".utf8))
        #expect(run.status == 0, "\(run.errors)")
        #expect(try opens("one two four"))
        #expect(!run.errors.contains("four"))
    }

    @Test(
        "A signal at the prompt ends the tool and leaves the terminal with its echo",
        arguments: [SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGALRM])
    func signals(_ number: Int32) throws {
        let before = try fixture.snapshot()
        for command in [
            ["encrypt", fixture.database], ["backup", fixture.database, "--output", fixture.folder.path("backup.db")],
        ] {
            let run = try prompting(command)
            try run.wait(for: "Key: ")
            #expect(try !run.echoes)
            #expect(kill(run.identifier, number) == 0)
            #expect(try run.finish().status == 1_000 + number)
            #expect(try run.echoes)
        }
        #expect(try fixture.snapshot() == before)
    }

    @Test("A stopped prompt gives the terminal its echo back, and asks again when it continues")
    func stop() throws {
        let run = try prompting(["encrypt", fixture.database])
        try run.wait(for: "Key: ")
        #expect(kill(run.identifier, SIGTSTP) == 0)
        try run.waitUntilStopped()
        #expect(try run.echoes)
        #expect(kill(run.identifier, SIGCONT) == 0)
        try run.wait(for: "Key: ", times: 2)
        try run.type("typed\n")
        try run.type("typed\n", at: "Repeat the key: ")
        #expect(try run.finish().status == 0)
        #expect(try run.echoes)
        #expect(try opens("typed"))
    }

    @Test(
        "Ctrl-C and Ctrl-\\ at the prompt end the tool",
        .enabled("setsid is needed to give the tool a terminal") {
            FileManager.default.isExecutableFile(atPath: "/usr/bin/setsid")
        }, arguments: [(0x03, SIGINT), (0x1c, SIGQUIT)])
    func typedSignals(_ typed: (byte: Int, signal: Int32)) throws {
        let before = try fixture.snapshot()
        let run = try prompting(["encrypt", fixture.database], controls: true)
        try run.type(Array("half".utf8) + [UInt8(typed.byte)])
        // The status that setsid gives to a program that a signal ended.
        #expect([typed.signal, 128 + typed.signal, 1_000 + typed.signal].contains(try run.finish().status))
        #expect(try run.echoes)
        #expect(try fixture.snapshot() == before)
    }

    @Test(
        "A typed key with a control character is refused",
        arguments: [[0x1b, 0x5b, 0x44], [0x09], [0x16, 0x17], [0x02], [0x16, 0x7f]] as [[UInt8]])
    func controlCharacters(_ bytes: [UInt8]) throws {
        let before = try fixture.snapshot()
        let run = try prompting(["encrypt", fixture.database])
        try run.type(Array("secret".utf8) + bytes + [0x0a])
        let ended = try run.finish()
        #expect(ended.status == 65, "\(ended.errors)")
        #expect(ended.errors.contains("control character"), "\(ended.errors)")
        #expect(!ended.errors.contains("secret"))
        #expect(try fixture.snapshot() == before)
        #expect(try run.echoes)
    }

    @Test(
        "A line that the terminal would cut is refused, and one that just fits is the key", arguments: [4_094, 4_096])
    func longLine(_ count: Int) throws {
        let before = try fixture.snapshot()
        let typed = [UInt8](repeating: UInt8(ascii: "k"), count: count) + [0x0a]
        let run = try prompting(["encrypt", fixture.database])
        try run.type(typed)
        guard count > 4_094 else {
            try run.type(typed, at: "Repeat the key: ")
            #expect(try run.finish().status == 0)
            #expect(try opens(String(repeating: "k", count: count)))
            return
        }
        #expect(try run.finish().status == 65)
        #expect(try fixture.snapshot() == before)
    }

    @Test("Two different lines are refused, and nothing is changed")
    func unequal() throws {
        let before = try fixture.snapshot()
        let run = try prompting(["encrypt", fixture.database])
        try run.type("one\n")
        try run.type("two\n", at: "Repeat the key: ")
        #expect(try run.finish().status == 66)
        #expect(try fixture.snapshot() == before)
    }
}
