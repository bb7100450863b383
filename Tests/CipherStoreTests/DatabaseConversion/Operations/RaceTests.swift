internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Several processes that upgrade one file.
///
/// `Scripts/races` tests more processes, and another program that writes.
struct RaceTests {
    private static let subject = TestProgram.built("CipherCrashSubject")
    private static let holder = TestProgram.built("CipherLockHolder")
    private static var isPossible: Bool { subject.isThere && holder.isThere }

    @Test(
        "One of several simultaneous launches does the work, even if one of them is killed", .enabled(if: isPossible),
        arguments: [false, true])
    func launches(kills: Bool) throws {
        let folder = try TemporaryFolder()
        #expect(try Self.subject.run(["make", folder.path("app.db")]).status == 0)
        let runs = try (0..<5).map { _ in try Self.subject.start(["encrypt", folder.path("app.db")]) }
        if kills { runs[0].kill() }
        let endings = try runs.map { try $0.wait() }
        let survivors = endings.filter { !$0.wasKilled }
        #expect(survivors.count >= 4)
        #expect(survivors.allSatisfy { ["encrypted", "alreadyEncrypted"].contains($0.output) }, "\(survivors)")
        let workers = survivors.count { $0.output == "encrypted" }
        // A killed process may have committed.
        #expect(kills ? workers <= 1 : workers == 1)
        #expect(try Self.subject.run(["check", folder.path("app.db")]).output == "encrypted wal")
        #expect(try folder.names.filter { !["app.db-wal", "app.db-shm"].contains($0) } == ["app.db"])
    }

    private func upgrade(_ file: LegacyFile) throws -> EncryptionReport {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        return try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
    }

    @Test(
        "Another program's connection in WAL mode prevents the upgrade and continues to work", .enabled(if: isPossible))
    func writeAheadLog() throws {
        let file = try LegacyFile { connection in
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript("CREATE TABLE t(a); INSERT INTO t VALUES ('early')")
        }
        let other = try Self.holder.start(["sql", file.path])
        #expect(try other.line() == "ready")
        #expect(try other.ask("SELECT a FROM t") == "ok early")
        #expect(try storeError { try upgrade(file) }?.code == .busy)
        #expect(try other.ask("INSERT INTO t VALUES ('late')") == "ok")
        #expect(try storeError { try upgrade(file) }?.code == .busy)
        #expect(try other.wait().status == 0)
        #expect(try upgrade(file).outcome == .encrypted)
        #expect(
            try file.read(key: TestKeys.raw()) { try $0.values(String.self, "SELECT a FROM t") } == ["early", "late"])
    }
}
