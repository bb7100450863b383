internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Connections that have the old file open after the swap.
///
/// The system does not report them before the swap, or they are opened at that very moment.
struct ReplacedFileTests {
    @Test("The limit on replaced files that stay locked counts each of their descriptors")
    func countsDescriptors() throws {
        let file = try OpeningFixture.file(version: 23, journal: "DELETE")
        let original = OriginalFile(file.path, try #require(try FileSystem.status(file.path)))
        let opened = try (0..<3).map { _ in try DatabaseFile(path: file.path) }
        defer { for file in opened { file.close() } }
        let (full, roomy) = (KeptFiles(limit: 3), KeptFiles(limit: 4))
        for kept in [full, roomy] { kept.keep(opened[0], original) }
        #expect(try storeError { try full.checkRoom("next.db") }?.code == .busy)
        #expect(try storeError { try roomy.checkRoom("next.db") } == nil)
    }

    private static let holder = TestProgram.built("CipherLockHolder")
    private static let subject = TestProgram.built("CipherCrashSubject")
    private static let privileges = TestProgram(path: "/usr/bin/setpriv")
    private static var isPossible: Bool { holder.isThere && LinuxCalls.areUsed }
    /// Root without the capability to lease another user's file represents every system that reports no openings.
    private static var canForgoLeases: Bool {
        holder.isThere && subject.isThere && privileges.isThere && NSUserName() == "root"
    }
    private static let conversions: [Conversions] = [.encrypt, .rekey, .decrypt]
    private static let modes = ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF"]

    private func start(_ conversion: Conversions, _ file: LegacyFile) throws -> TestProgram.Running {
        try FileManager.default.setAttributes([.ownerAccountID: 12], ofItemAtPath: file.path)
        return try Self.privileges.start([
            "--bounding-set=-lease", Self.subject.path, conversion.rawValue, file.path, "stay",
        ])
    }

    private func hold(_ file: LegacyFile, _ conversion: Conversions, _ lines: [String]) throws -> TestProgram.Running {
        let other = try Self.holder.start(["sql", file.path] + conversion.oldKeyArgument)
        #expect(try other.line() == "ready")
        for line in lines { #expect(try other.ask(line).hasPrefix("ok")) }
        return other
    }

    /// A transaction in the new file that is partly on the disk and in the journal.
    private static let halfWritten = [
        "PRAGMA cache_size = 1", "BEGIN",
        """
        INSERT INTO t WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 99)
        SELECT hex(zeroblob(1000)) FROM s
        """.replacingOccurrences(of: "\n", with: " "),
        "UPDATE t SET a = 'lost'",
    ]

    @Test(
        "An undetectable connection is locked out of the old file, and the new file's journal survives it",
        .enabled(if: canForgoLeases), arguments: conversions, modes)
    func journal(_ conversion: Conversions, mode: String) throws {
        let file = try conversion.file(journal: "DELETE")
        let other = try hold(file, conversion, ["PRAGMA journal_mode = \(mode)", "SELECT count(*) FROM t"])
        let run = try start(conversion, file)
        #expect(try run.line().contains("; it could not be determined whether another process has the old file open"))
        let writer = try Self.holder.start(["sql", file.path] + conversion.newKeyArgument)
        #expect(try writer.line() == "ready")
        for line in Self.halfWritten { #expect(try writer.ask(line).hasPrefix("ok")) }
        #expect(try other.ask("SELECT count(*) FROM t") == "error 5")
        #expect(try other.ask("INSERT INTO t VALUES ('lost')") == "error 5")
        #expect(try file.folder.names.contains("app.db-journal"))
        writer.kill()
        #expect(try writer.wait().wasKilled)
        #expect(try other.ask("SELECT count(*) FROM t") == "error 5")
        #expect(try conversion.values(file, "SELECT a FROM t ORDER BY rowid") == ["first", "second", "third"])
        #expect(try run.wait().status == 0)
        // Page 1 of the old file was overwritten, so that nothing is acknowledged there.
        #expect(try other.ask("INSERT INTO t VALUES ('lost')") == "error 26")
        #expect(try other.wait().status == 0)
    }

    @Test(
        "An old connection that had not read its WAL file cannot touch the new file's log",
        .enabled(if: canForgoLeases), arguments: conversions)
    func log(_ conversion: Conversions) throws {
        let file = try conversion.file(journal: "WAL")
        let other = try hold(file, conversion, [])
        let run = try start(conversion, file)
        #expect(try run.line().contains("; it could not be determined whether another process has the old file open"))
        let writer = try Self.holder.start(["sql", file.path] + conversion.newKeyArgument)
        #expect(try writer.line() == "ready")
        #expect(try writer.ask("INSERT INTO t VALUES ('new')") == "ok")
        #expect(try other.ask("PRAGMA wal_checkpoint(PASSIVE)") == "error 5")
        writer.kill()
        #expect(try writer.wait().wasKilled)
        #expect(try conversion.values(file, "SELECT a FROM t ORDER BY rowid") == ["first", "second", "third", "new"])
        #expect(try run.wait().status == 0)
        #expect(try other.wait().status == 0)
    }

    @Test(
        "A reader that is active when the copy is ready prevents the swap, even if it was undetectable before",
        .enabled(if: canForgoLeases), arguments: conversions,
        [
            ["BEGIN", "SELECT count(*) FROM t"], ["half SELECT a FROM t"],
            ["PRAGMA locking_mode = EXCLUSIVE", "SELECT 1 FROM t"],
        ])
    func reader(_ conversion: Conversions, lines: [String]) throws {
        let file = try conversion.file(journal: "DELETE")
        let before = try file.digest()
        let other = try hold(file, conversion, ["PRAGMA journal_mode = MEMORY"] + lines)
        let run = try start(conversion, file)
        #expect(try run.wait().output.hasPrefix("busy: "))
        #expect(try file.digest() == before)
        #expect(try other.ask("INSERT INTO t VALUES ('late')") == "ok")
        if lines[0] == "BEGIN" { #expect(try other.ask("COMMIT") == "ok") }
        #expect(try other.wait().status == 0)
        #expect(try conversion.run(file).besidesLeases.isEmpty)
        #expect(try conversion.values(file, "SELECT a FROM t WHERE a = 'late'") == ["late"])
    }

    @Test(
        "A connection being opened at the moment of the swap is reported, and locked out of the old file",
        .enabled(if: isPossible))
    func opening() throws {
        let file = try Conversions.encrypt.file(journal: "DELETE")
        let paths = try DatabasePaths(file.path)
        let identity = OriginalFile(paths.database, try #require(try FileSystem.status(paths.database)))
        let reserved = try DatabaseFile(path: paths.database, access: .readWrite)
        #expect(reserved.reserve(timeout: .zero))
        let state = try identity.state(start: reserved.read(at: 0, count: OriginalFile.State.length))
        let old = try ReplacedFile(paths, identity, .proven, reserved: reserved, state: state, timeout: .zero)
        #expect(try old.isAsItWas())
        // The other process waits in open(2), where the test cannot wait for one of its statements.
        let other = try Self.holder.start(["sql", file.path])
        while try old.isAsItWas() { sched_yield() }
        try paths.openFolder().rename(paths.name, to: "old")
        let warnings = old.end(overwriting: true)
        #expect(warnings.count == 1)
        #expect(warnings.first?.contains("another process opened the old file") == true)
        #expect(try other.line() == "ready")
        #expect(try other.ask("SELECT count(*) FROM t") == "error 5")
        #expect(try other.ask("INSERT INTO t VALUES ('lost')") == "error 5")
        #expect(try other.wait().status == 0)
    }

    @Test("An empty file that another program has open is not replaced", .enabled(if: isPossible))
    func empty() throws {
        let folder = try TemporaryFolder()
        try folder.write("", to: "app.db")
        let other = try Self.holder.start(["sql", folder.path("app.db")])
        #expect(try other.line() == "ready")
        var options = ConversionOptions()
        options.busyTimeout = .zero
        let upgrade = try EncryptionUpgrade(
            path: folder.path("app.db"), provider: TestKeys.provider(), options: options)
        #expect(try storeError { try upgrade.run() }?.code == .busy)
        #expect(try folder.names == ["app.db"])
        #expect(try other.ask("CREATE TABLE t(a)") == "ok")
        #expect(try other.wait().status == 0)
        #expect(try upgrade.run().outcome == .encrypted)
    }
}
