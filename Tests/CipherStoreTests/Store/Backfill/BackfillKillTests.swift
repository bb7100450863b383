internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// A process that runs a backfill and is killed, and the next that goes on.
struct BackfillKillTests {
    private static let subject = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "CipherCrashSubject").path(percentEncoded: false)
    private static var isPossible: Bool { FileManager.default.isExecutableFile(atPath: subject) }

    /// - Returns: What the process said, and whether it was killed.
    private func run(_ folder: TemporaryFolder, _ arguments: String...) throws -> (output: String, wasKilled: Bool) {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: Self.subject)
        process.arguments = ["backfill", folder.path("")] + arguments
        process.standardOutput = pipe
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (String(decoding: data, as: UTF8.self), process.terminationReason == .uncaughtSignal)
    }

    @Test(
        "After a kill in or behind any batch every row is visited once", .enabled(if: isPossible),
        arguments: ["in", "behind"], [1, 2, 4])
    func kill(place: String, batch: Int) throws {
        let folder = try TemporaryFolder()
        #expect(try run(folder, place, "\(batch)").wasKilled)
        let connection = try Connection(
            path: folder.path("app.db"), mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        let done = place == "in" ? (batch - 1) * 10 : batch * 10
        #expect(try connection.value(Int.self, "SELECT sum(visits) FROM t") == done)
        #expect(try connection.value(Int.self, "SELECT done FROM cipherstore_backfill") == done)
        connection.close()
        let rest = try run(folder)
        #expect(!rest.wasKilled)
        #expect(rest.output == "visited \(40 - done), each row 1 to 1 times\n")
    }
}
