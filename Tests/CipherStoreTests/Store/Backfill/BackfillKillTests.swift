internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// A process that runs a backfill and is killed, and the next process, which continues the backfill.
struct BackfillKillTests {
    private static let subject = TestProgram.built("CipherCrashSubject")

    private func run(_ folder: TemporaryFolder, _ arguments: String...) throws -> TestProgram.Ending {
        try Self.subject.run(["backfill", folder.path("")] + arguments)
    }

    @Test(
        "After a kill in or after any batch, every row is visited once", .enabled(if: subject.isThere),
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
        #expect(rest.output == "visited \(40 - done), each row 1 to 1 times")
    }
}
