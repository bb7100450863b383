import CipherTestSupport
import Foundation
import Testing

/// How bytes and names are made durable.
struct SyncTests {
    private static let subject = TestProgram.built("CipherCrashSubject")
    private static var isPossible: Bool {
        !LinuxCalls.areUsed && subject.isThere && TestProgram.strace.isThere
    }
    /// Apple's `F_FULLFSYNC`, which Linux refuses.
    private static let request = "0x33"

    @Test(
        "Before each fsync, the drive is requested to empty its cache", .enabled(if: isPossible),
        arguments: ["encrypt", "launch"])
    func requests(operation: String) throws {
        let (folder, traces) = (try TemporaryFolder(), try TemporaryFolder())
        let (database, trace) = (folder.path("app.db"), traces.path("trace"))
        #expect(try Self.subject.run(["make", database]).status == 0)
        let run = try TestProgram.strace.run([
            "-f", "-qq", "-y", "-o", trace, "-e", "trace=fcntl,fsync", Self.subject.path, operation, database,
        ])
        #expect(run.status == 0, "\(run.errors)")
        var last: [Substring: Substring] = [:]
        var files: [Substring] = []
        for line in try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
            let (thread, call) = (parts[0], parts[1].drop { $0 == " " })
            if call.hasPrefix("fsync(") {
                let file = call.dropFirst("fsync(".count).prefix { $0 != ")" }
                let before = last[thread] ?? "nothing"
                #expect(before.hasPrefix("fcntl(\(file), \(Self.request)"), "\(call) follows \(before)")
                files.append(file)
            }
            last[thread] = call
        }
        // Among them are the copy, and the folder after the swap.
        #expect(files.contains { $0.contains("app.db-upgrade-") })
        #expect(files.contains { $0.contains(folder.url.lastPathComponent + ">") })
    }
}
