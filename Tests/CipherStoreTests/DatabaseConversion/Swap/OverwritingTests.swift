import CipherTestSupport
import Foundation
import Testing

/// When the old file, which has lost its name, is made unusable for programs that open it too late.
struct OverwritingTests {
    private static let subject = TestProgram.built("CipherCrashSubject")
    private static var isPossible: Bool { subject.isThere && TestProgram.strace.isThere }
    private let folder = try? TemporaryFolder()
    private let traces = try? TemporaryFolder()

    /// Linux's `O_PATH`, which Swift does not import.
    private static let pathAlone: Int32 = 0o10000000

    /// Upgrades a file under strace, and returns the calls that concern the swap.
    private func upgrade(_ inject: [String] = []) throws -> (calls: [String], output: String, old: Data?) {
        let folder = try #require(folder)
        let trace = try #require(traces).path("trace")
        for name in try folder.names { try FileManager.default.removeItem(atPath: folder.path(name)) }
        #expect(try Self.subject.run(["make", folder.path("app.db")]).status == 0)
        // A descriptor with `O_PATH`: one that can read would prevent the upgrade.
        let old = open(folder.path("app.db"), Self.pathAlone | O_CLOEXEC)
        #expect(old >= 0)
        defer { close(old) }
        let run = try TestProgram.strace.run(
            ["-f", "-qq", "-y", "-o", trace, "-e", "trace=\(LinuxCalls.swap),fsync,fdatasync,pwrite64"] + inject
                + [Self.subject.path, "encrypt", folder.path("app.db")])
        let calls = try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n").map(String.init)
        let bytes = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/fd/\(old)")).read(upToCount: 4_096)
        return (calls, run.output, bytes)
    }

    /// A part of the path of the old file, as strace shows it.
    private static let oldFile = LinuxCalls.areUsed ? "app.db-upgrade-" : "/app.db>(deleted)"

    private func isOverwriting(_ call: String) -> Bool {
        call.contains("pwrite64(") && call.contains(Self.oldFile) && call.contains("\"\\0\\0\\0\\0\\0\\0\\0\\0")
            && call.contains(", 0) =")
    }

    private func isFolderSync(_ call: String) -> Bool {
        guard call.contains(" fsync("), let folder else { return false }
        return call.contains("<\(folder.url.resolvingSymlinksInPath().path(percentEncoded: false))>")
            || call.contains(folder.url.lastPathComponent + ">")
    }

    @Test("The old file is overwritten only after the folder was synced", .enabled(if: isPossible))
    func order() throws {
        let (calls, output, old) = try upgrade()
        #expect(output == "encrypted")
        let rename = try #require(
            calls.firstIndex { $0.contains(" \(LinuxCalls.swap)(") && $0.contains("app.db-upgrade-") })
        let sync = try #require(calls[rename...].firstIndex(where: isFolderSync))
        let overwriting = try #require(calls.firstIndex(where: isOverwriting))
        #expect(sync < overwriting)
        #expect(old == Data(count: 4_096), "the whole of page 1 is overwritten")
    }

    @Test(
        "If the folder could not be synced, the old file is not overwritten, because it may return",
        .enabled(if: isPossible))
    func unsynced() throws {
        let first = try upgrade().calls
        let rename = try #require(
            first.firstIndex { $0.contains(" \(LinuxCalls.swap)(") && $0.contains("app.db-upgrade-") })
        let thread = try #require(first[rename].split(separator: " ").first)
        // strace counts the calls of each thread.
        let number = first[..<rename].count { $0.hasPrefix("\(thread) ") && $0.contains(" fsync(") } + 1
        let (calls, output, old) = try upgrade(["-e", "inject=fsync:error=EIO:when=\(number)"])
        #expect(output.hasPrefix("encrypted; the old file may reappear after a power loss, because the folder"))
        #expect(!calls.contains(where: isOverwriting))
        #expect(old?.starts(with: Data("SQLite format 3\0".utf8)) == true)
    }
}
