import CipherTestSupport
import Foundation
import Testing

/// A process that exits while a store works.
@Suite(.timeLimit(.minutes(20)))
struct ProcessExitTests {
    private static let subject = TestProgram.built("CipherCrashSubject")

    @Test("A process that exits during reads and writes ends with its own status", .enabled(if: subject.isThere))
    func race() throws {
        for _ in 0..<4 {
            let folder = try TemporaryFolder()
            let ending = try Self.subject.run(["exit", folder.path(""), "race"])
            #expect(ending.status == 0 && !ending.wasKilled)
        }
    }

    @Test(
        "A store that works while its process exits can still use libcrypto", .enabled(if: subject.isThere),
        arguments: ["write", "open"])
    func exit(work: String) throws {
        let folder = try TemporaryFolder()
        if work == "open" { _ = try Self.subject.run(["make", folder.path("app.db"), "plaintext"]) }
        let ending = try Self.subject.run(["exit", folder.path(""), work])
        #expect(ending.output == "done")
        #expect(ending.status == 0 && !ending.wasKilled)
    }
}
