import CipherTestSupport
import Testing

/// How the file of a conversion is locked and its log is merged.
@Suite(.timeLimit(.minutes(20)))
struct SourceHoldTests {
    private static let subject = TestProgram.built("CipherCrashSubject")

    @Test(
        "The log is checkpointed with all others locked out, and no checkpoint runs while others can write",
        .enabled(if: subject.isThere))
    func noCheckpointBesideOthers() throws {
        let folder = try TemporaryFolder(inMemory: true)
        let ending = try Self.subject.run(["quiesce", folder.path("")])
        #expect(ending.status == 0, "\(ending.errors)")
        #expect(ending.output.split(whereSeparator: \.isNewline) == ["rows 1 checkpoints 0"], "\(ending.output)")
    }
}
