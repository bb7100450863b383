import CipherTestSupport
import Foundation
import Testing

/// Kills the upgrade at system calls around its commit.
///
/// `Scripts/kills` does so at all of them.
struct CrashPointTests {
    private static let subject = TestProgram.built("CipherCrashSubject")
    private static var isPossible: Bool { subject.isThere && TestProgram.strace.isThere }

    /// Returns what a launch finds.
    ///
    /// It reads a copy, because reading recovers the files.
    private func state(_ folder: TemporaryFolder) throws -> String {
        let look = try TemporaryFolder()
        for name in try folder.names {
            try FileManager.default.copyItem(atPath: folder.path(name), toPath: look.path(name))
        }
        return try Self.subject.run(["check", look.path("app.db")]).output
    }

    @Test(
        "The file is intact at every instant, and the next run finishes the job", .enabled(if: isPossible),
        arguments: [LinuxCalls.swap, "unlink", "unlinkat", "fsync", "fchmod", "pwrite64"])
    func kill(call: String) throws {
        let template = try TemporaryFolder()
        _ = try Self.subject.run(["make", template.path("app.db")])
        #expect(try template.names.contains("app.db-wal"))
        var number = 0
        while number < 100 {
            number += 1
            let folder = try TemporaryFolder()
            for name in ["app.db", "app.db-wal"] {
                try FileManager.default.copyItem(atPath: template.path(name), toPath: folder.path(name))
            }
            let encrypt = ["encrypt", folder.path("app.db")]
            let killed = try TestProgram.strace.run(
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                    "inject=\(call):signal=SIGKILL:when=\(number)", Self.subject.path,
                ] + encrypt)
            let found = try state(folder).split(separator: " ")
            #expect(found.count == 2 && ["plaintext", "encrypted"].contains(found[0]), "\(call) \(number): \(found)")
            guard killed.wasKilled else { break }
            #expect(["encrypted", "alreadyEncrypted"].contains(try Self.subject.run(encrypt).output))
            #expect(try state(folder) == "encrypted wal")
            #expect(try folder.names.filter { !["app.db-wal", "app.db-shm"].contains($0) } == ["app.db"])
        }
        // The call was made at least once, and nothing killed the last run.
        #expect((2..<100).contains(number))
    }
}
