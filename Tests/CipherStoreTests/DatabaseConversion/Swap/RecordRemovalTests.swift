import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// When the record of a conversion is removed.
///
/// It must name the old file for as long as a power loss can restore that file.
struct RecordRemovalTests {
    private static let subject = TestProgram.built("CipherCrashSubject")
    /// Without an exchange of names, the old file never has the copy's name.
    private static var isPossible: Bool { LinuxCalls.areUsed && subject.isThere && TestProgram.strace.isThere }
    private let folder = try? TemporaryFolder()
    private let traces = try? TemporaryFolder()

    /// Runs the upgrade under strace, and returns the calls that concern names.
    private func upgrade(_ inject: [String] = []) throws -> (calls: [String], output: String) {
        let trace = try #require(traces).path("trace")
        let run = try TestProgram.strace.run(
            ["-f", "-qq", "-y", "-o", trace, "-e", "trace=renameat2,unlinkat,fsync"] + inject
                + [Self.subject.path, "encrypt", try #require(folder).path("app.db")])
        let calls = try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n").map(String.init)
        return (calls, run.output)
    }

    /// Makes a database in rollback mode, because restoring WAL mode also syncs the folder.
    private func make() throws {
        let database = try #require(folder).path("app.db")
        #expect(try Self.subject.run(["make", database]).status == 0)
        let connection = try Connection(path: database, mode: .readWrite)
        defer { connection.close() }
        #expect(try connection.value(String.self, "PRAGMA journal_mode = DELETE") == "delete")
    }

    /// Leaves the files as they are after a kill before the removal of the old file, which has the copy's name.
    private func killBeforeRemoval() throws {
        let folder = try #require(folder)
        try make()
        let calls = try upgrade(["-e", "inject=renameat2:signal=KILL:when=999"]).calls
        let rename = try #require(calls.firstIndex { isOfCopy($0) && $0.contains(" renameat2(") })
        let thread = try #require(calls[rename].split(separator: " ").first)
        // strace counts the calls of each thread.
        let removal = calls[..<rename].count { $0.hasPrefix("\(thread) ") && $0.contains(" unlinkat(") } + 1
        for name in try folder.names { try FileManager.default.removeItem(atPath: folder.path(name)) }
        try make()
        _ = try upgrade(["-e", "inject=unlinkat:signal=KILL:when=\(removal)"])
        #expect(try folder.names.contains { $0.hasPrefix("app.db-upgrade-") })
        #expect(try folder.names.contains("app.db-attempt"))
    }

    private func isOfCopy(_ call: String) -> Bool { call.contains("app.db-upgrade-") }

    private func isFolderSync(_ call: String) -> Bool {
        guard call.contains(" fsync("), let folder else { return false }
        return call.contains(folder.url.lastPathComponent + ">")
    }

    @Test(
        "After a kill the folder is synced between the removal of the old file and that of the record",
        .enabled(if: isPossible))
    func order() throws {
        try killBeforeRemoval()
        let (calls, output) = try upgrade()
        #expect(output == "alreadyEncrypted")
        let removal = try #require(calls.firstIndex { isOfCopy($0) && $0.contains(" unlinkat(") })
        let record = try #require(calls.firstIndex { $0.contains("app.db-attempt") && $0.contains(" unlinkat(") })
        #expect(removal < record)
        #expect(calls[removal..<record].contains(where: isFolderSync))
    }

    @Test("If the folder cannot be synced the record stays, and the next run removes it", .enabled(if: isPossible))
    func unsynced() throws {
        let folder = try #require(folder)
        try killBeforeRemoval()
        _ = try upgrade(["-e", "inject=fsync:error=EIO"])
        #expect(try folder.names.contains("app.db-attempt"))
        _ = try upgrade()
        #expect(try folder.names == ["app.db"])
    }
}
