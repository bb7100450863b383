import CipherTestSupport
import Foundation
import Testing

/// A process that exits while a store works.
@Suite(.timeLimit(.minutes(20)))
struct ProcessExitTests {
    private static let subject = TestProgram.built("CipherCrashSubject")

    @Test("A process that exits amidst reads and writes ends as it says", .enabled(if: subject.isThere))
    func race() throws {
        for _ in 0..<4 {
            let folder = try TemporaryFolder()
            let ending = try Self.subject.run(["exit", folder.path(""), "race"])
            #expect(ending.status == 0 && !ending.wasKilled)
        }
    }

    @Test(
        "What a store does while its process exits finds libcrypto as it was", .enabled(if: subject.isThere),
        arguments: ["write", "open"])
    func exit(work: String) throws {
        let folder = try TemporaryFolder()
        if work == "open" { _ = try Self.subject.run(["make", folder.path("app.db"), "plaintext"]) }
        let ending = try Self.subject.run(["exit", folder.path(""), work])
        #expect(ending.output == "done")
        #expect(ending.status == 0 && !ending.wasKilled)
    }
}
