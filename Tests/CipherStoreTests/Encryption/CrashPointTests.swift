import Foundation
import TestSupport
import Testing

/// The upgrade killed at system calls around its commit; `Scripts/torture` does so at all of them.
struct CrashPointTests {
    private struct Run {
        let output: String
        let wasKilled: Bool
    }

    /// Where the test's own executable is, the subject is too.
    private static let subject = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "CrashSubject").path(percentEncoded: false)
    private static let strace = "/usr/bin/strace"
    private static var isPossible: Bool {
        [subject, strace].allSatisfy(FileManager.default.isExecutableFile(atPath:))
    }

    private func run(_ program: String, _ arguments: [String]) throws -> Run {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Run(
            output: String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines),
            wasKilled: process.terminationReason == .uncaughtSignal)
    }

    /// What a launch finds, asked of a copy: reading it recovers it.
    private func state(_ folder: TemporaryFolder) throws -> String {
        let look = try TemporaryFolder()
        for name in try folder.names {
            try FileManager.default.copyItem(atPath: folder.path(name), toPath: look.path(name))
        }
        return try run(Self.subject, ["check", look.path("app.db")]).output
    }

    @Test(
        "At every instant the file is whole, and the next run finishes the job", .enabled(if: isPossible),
        arguments: ["rename", "unlink", "fsync", "ftruncate"])
    func kill(call: String) throws {
        let template = try TemporaryFolder()
        _ = try run(Self.subject, ["make", template.path("app.db")])
        #expect(try template.names.contains("app.db-wal"))
        var number = 0
        while number < 100 {
            number += 1
            let folder = try TemporaryFolder()
            for name in ["app.db", "app.db-wal"] {
                try FileManager.default.copyItem(atPath: template.path(name), toPath: folder.path(name))
            }
            let encrypt = ["encrypt", folder.path("app.db")]
            let killed = try run(
                Self.strace,
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                    "inject=\(call):signal=SIGKILL:when=\(number)", Self.subject,
                ] + encrypt)
            let found = try state(folder).split(separator: " ")
            #expect(found.count == 2 && ["plaintext", "encrypted"].contains(found[0]), "\(call) \(number): \(found)")
            guard killed.wasKilled else { break }
            #expect(["encrypted", "alreadyEncrypted"].contains(try run(Self.subject, encrypt).output))
            #expect(try state(folder) == "encrypted wal")
            #expect(try folder.names.filter { !["app.db-wal", "app.db-shm"].contains($0) } == ["app.db"])
        }
        // The call was met at least once, and the last run was one that nothing killed.
        #expect((2..<100).contains(number))
    }
}
