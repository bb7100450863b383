import CipherTestSupport
import Testing

/// The states in which a power loss during an upgrade can leave the disk; `Scripts/powerloss` builds all of them.
struct PowerLossTests {
    private static let programs = [TestProgram.strace, .built("CipherCrashTrials"), .built("CipherCrashSubject")]

    @Test(
        "After a power loss that drops unsynced data the file is intact, and the next run finishes",
        .enabled(if: programs.allSatisfy(\.isThere)))
    func encrypt() throws {
        let run = try TestProgram.built("CipherCrashTrials").run(["powerloss", "--quick", "encrypt"])
        let output = run.output
        #expect(run.status == 0, "\(output)")
        let row = output.split(separator: "\n").dropFirst().first?.split(separator: " ").compactMap { Int($0) } ?? []
        // The columns are points, states, old, new and losses. The power was lost both before and after the commit.
        try #require(row.count == 5, "\(output)")
        #expect(row[0] > 50 && row[1] > 50 && row[2] > 10 && row[3] > 10 && row[4] == 0, "\(output)")
    }
}
