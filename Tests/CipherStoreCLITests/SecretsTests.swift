import CipherTestSupport
import Foundation
import Testing

/// The output of the tool, with a key and rows that are easy to recognize.
///
/// `Scripts/secrets` also examines the memory of a process.
struct SecretsTests {
    private static let tool = TestProgram.built("cipherstore")
    private static let subject = TestProgram.built("CipherCrashSubject")
    private static let shell = TestProgram(path: "/bin/sh")
    private static var isPossible: Bool { tool.isThere && subject.isThere && TestProgram.strace.isThere }

    private static let raw = "c0ffee5ec2e7" + String(repeating: "a7", count: 26)
    private static let phrase = "Distinctive-Passphrase-7731"
    /// The beginning of the rows that the subject writes.
    private static let secrets = [raw, phrase, "message 1"]

    private let folder: TemporaryFolder
    private let keys: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        keys = try TemporaryFolder()
        try keys.write("x'\(Self.raw)'\n", to: "raw")
        try keys.write(Self.phrase, to: "phrase")
    }

    private func found(_ text: String) -> [String] {
        Self.secrets.filter { text.range(of: $0, options: .caseInsensitive) != nil }
    }

    /// Runs a command with the umask 0, and checks every traced call of it.
    private func run(_ arguments: [String], expecting status: Int32) throws {
        let trace = keys.path("trace")
        let calls = "openat,open,creat,write,rename,renameat2,link,mkdir"
        let run = try Self.shell.run(
            ["-c", "umask 0; exec \"$@\"", "sh", TestProgram.strace.path, "-f", "-qq", "-s", "100000", "-o", trace]
                + ["-e", "trace=\(calls)", Self.tool.path] + arguments)
        let name = arguments[0]
        #expect(run.status == status, "\(name): \(run.errors)")
        #expect(found(run.output + run.errors).isEmpty, "\(name) prints a secret")
        for call in try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n") {
            // Pages are written with another call.
            #expect(found(String(call)).isEmpty, "\(name): \(call)")
            let isMade = call.contains("O_CREAT") || call.contains("creat(")
            guard isMade || call.contains("O_RDWR") || call.contains("O_WRONLY"), !call.contains("ENOENT") else {
                continue
            }
            let isAtHome =
                [folder.path("app.db"), "/dev/null", "/dev/tty", "/dev/urandom"].contains { place in
                    call.contains("\"\(place)")
                }
                // A file beside the database has a name in the open folder, or no name at all.
                || call.contains(", \"app.db") || call.contains("O_TMPFILE") && call.contains(", \".\"")
                || !LinuxCalls.areUsed && call.contains(", \".cipherstore-")
            #expect(isAtHome, "\(name) opens another file for writing: \(call)")
            let isOurs = ["app.db-upgrade", "app.db-attempt", "app.db-plaintext", ".cipherstore-"].contains {
                call.contains($0)
            }
            guard isMade, isOurs else { continue }
            // A file must have a private mode when it is created.
            #expect(call.contains(/, 0[0-7]?00\)/), "\(name) creates a file that others can read: \(call)")
        }
    }

    @Test(
        "No command prints or writes a key or a row, or creates a file that other users can read",
        .enabled(if: isPossible))
    func commands() throws {
        let database = folder.path("app.db")
        #expect(try Self.subject.run(["make", database]).status == 0)
        try run(["encrypt", database, "--key-file", keys.path("raw"), "--json"], expecting: 0)
        try run(["encrypt", database, "--key-file", keys.path("phrase")], expecting: 65)
        try run(["verify", database, "--key-file", keys.path("raw"), "--json"], expecting: 0)
        try run(
            ["rekey", database, "--key-file", keys.path("raw"), "--new-key-file", keys.path("phrase"), "--json"],
            expecting: 0)
        try run(["decrypt", database, "--key-file", keys.path("phrase"), "--json"], expecting: 0)
        try keys.write("x'\(Self.raw)0'", to: "malformed")
        try run(["encrypt", database, "--key-file", keys.path("malformed"), "--json"], expecting: 65)
    }
}
