import Foundation
import Testing

/// The states that a disk may hold after a power loss during an upgrade; `Scripts/powerloss` builds all of them.
struct PowerLossTests {
    /// Where the test's own executable is, the tools are too.
    private static func tool(_ name: String) -> String {
        URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: name)
            .path(percentEncoded: false)
    }

    private static var isPossible: Bool {
        ["/usr/bin/strace", tool("PowerLoss"), tool("CrashSubject")]
            .allSatisfy(FileManager.default.isExecutableFile(atPath:))
    }

    @Test(
        "With all that was not synced lost, or the names kept without it, the file is whole and the next run finishes",
        .enabled(if: isPossible))
    func encrypt() throws {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: Self.tool("PowerLoss"))
        process.arguments = [Self.tool("CrashSubject"), "--quick", "encrypt"]
        process.standardOutput = pipe
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let output = String(decoding: data, as: UTF8.self)
        #expect(process.terminationStatus == 0, "\(output)")
        let row = output.split(separator: "\n").dropFirst().first?.split(separator: " ").compactMap { Int($0) } ?? []
        // Points, states, old, new, losses: the cut came before the commit and after it.
        try #require(row.count == 5, "\(output)")
        #expect(row[0] > 50 && row[1] > 50 && row[2] > 10 && row[3] > 10 && row[4] == 0, "\(output)")
    }
}
