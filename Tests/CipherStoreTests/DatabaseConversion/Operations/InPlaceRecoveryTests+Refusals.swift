internal import CipherDatabaseConversion
internal import CipherErrors
import CipherKeyProviders
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Recoveries in place that are refused, and what a killed recovery leaves.
extension InPlaceRecoveryTests {
    // MARK: Refusals

    /// Without leases, an idle connection in a rollback journal mode cannot be detected.
    @Test(
        "A file open in another process is refused and not changed, in each journal mode",
        arguments: LinuxCalls.areUsed ? ["WAL", "DELETE"] : ["WAL"])
    func busy(journal: String) throws {
        let damaged = try Damaged(journal: journal)
        let other = try TestProgram.built("CipherLockHolder").start(["sql", damaged.path])
        #expect(try other.line() == "ready")
        #expect(try other.ask("SELECT count(*) FROM t").hasPrefix("ok"))
        let before = try damaged.digest()
        let error = try #require(try storeError { try damaged.recovery().runLocked() })
        #expect(error.code == .busy, "\(error)")
        #expect(try damaged.digest() == before)
        _ = try other.wait()
    }

    @Test(
        "A sound file is not recovered and stays unchanged, even if it was recovered before",
        arguments: ["WAL", "DELETE"], [true, false])
    func sound(journal: String, isEncrypted: Bool) throws {
        let damaged = try Damaged(key: isEncrypted ? TestKeys.raw() : nil, journal: journal, losesScrap: false)
        let before = try damaged.digest()
        let report = try damaged.recovery().runLocked()
        #expect(report.wasSound && report.complete && report.source == damaged.path, "\(report)")
        #expect(try damaged.digest() == before)
        try damaged.overwrite(page: damaged.scrap)
        #expect(try !damaged.recovery().runLocked().wasSound)
        let recovered = try damaged.digest()
        #expect(try damaged.recovery().runLocked().wasSound)
        #expect(try damaged.digest() == recovered)
    }

    @Test("Leftovers of a run that was killed after the swap are removed by the next run, which finds no damage")
    func soundAfterKill() throws {
        let damaged = try Damaged()
        _ = try damaged.recovery().runLocked()
        let after = try damaged.digest()
        let paths = try DatabasePaths(damaged.path)
        let folder = try paths.openFolder()
        var record = try AttemptRecord(
            attempts: 1, wasWriteAheadLog: true,
            original: try #require(try folder.status("app.db-damaged")).identity.inode)
        record.copy = try #require(try folder.status("app.db")).identity.inode
        record.keptAs = 1
        try record.write(folder, paths)
        #expect(try damaged.recovery().runLocked().wasSound)
        #expect(try damaged.digest() == after)
    }

    @Test("A file with intact pages is not sound if an index has another value than the row")
    func indexOfOtherValue() throws {
        let file = try LegacyFile {
            try $0.executeScript("CREATE TABLE t(a TEXT); CREATE INDEX i ON t(a); INSERT INTO t VALUES ('p'), ('qqqq')")
        }
        var data = try Data(contentsOf: URL(filePath: file.path))
        // The first occurrence is in the row, the second in the index.
        let place = try #require(data.firstRange(of: Data("qqqq".utf8)))
        data[place.lowerBound] -= 1
        try data.write(to: URL(filePath: file.path))
        let recovery = InPlaceRecovery(
            of: try DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()],
            options: ConversionOptions())
        let report = try recovery.runLocked()
        #expect(!report.wasSound && report.rows == 2, "\(report)")
    }

    @Test(
        "If the finishing step refuses, the file and its log stay, and nothing else is left",
        arguments: ["WAL", "DELETE"])
    func refusedFinishing(journal: String) throws {
        struct Refusal: Error {}
        let damaged = try Damaged(journal: journal)
        let before = try damaged.digest()
        #expect(throws: Refusal.self) { try damaged.recovery().runLocked { _, _ in throw Refusal() } }
        #expect(try damaged.digest() == before)
    }

    @Test("A writer that appears while the new database is built is not overwritten")
    func writtenMeanwhile() throws {
        let damaged = try Damaged()
        let error = try #require(
            try storeError {
                try damaged.recovery().runLocked { _, _ in
                    let log = try FileHandle(forWritingTo: URL(filePath: damaged.path + "-wal"))
                    try log.seekToEnd()
                    try log.write(contentsOf: Data(repeating: 0, count: 24))
                    try log.close()
                }
            })
        #expect(error.code == .busy, "\(error)")
        #expect(try damaged.folder.names == ["app.db", "app.db-wal"])
    }

    @Test("Attempts that a watchdog kills are counted")
    func attempts() throws {
        let damaged = try Damaged()
        let paths = try DatabasePaths(damaged.path)
        let status = try #require(try paths.openFolder().status(paths.name))
        var record = try AttemptRecord(attempts: 5, original: status.identity.inode)
        try record.write(paths.openFolder(), paths)
        let before = try damaged.digest()
        let error = try #require(try storeError { try damaged.upgrade().run() })
        #expect(error.code == .repeatedFailure)
        #expect(try damaged.digest() == before)
        record = try AttemptRecord(attempts: 1, original: status.identity.inode)
        try record.write(paths.openFolder(), paths)
        #expect(try damaged.upgrade().run().outcome == .recovered)
    }

    // MARK: After a kill

    @Test("The log that a killed run had set aside is restored before the file is examined")
    func putBack() throws {
        let damaged = try Damaged()
        let before = try damaged.digest()
        let paths = try DatabasePaths(damaged.path)
        let folder = try paths.openFolder()
        let status = try #require(try folder.status(paths.name))
        // The state after a kill between setting the log aside and the swap.
        var record = try AttemptRecord(attempts: 1, wasWriteAheadLog: true, original: status.identity.inode)
        let kept = try DamagedOriginal.keep(paths, folder, status.identity, &record)
        try kept.takeSidecars()
        #expect(try damaged.folder.names == ["app.db", "app.db-attempt", "app.db-damaged", "app.db-damaged-wal"])
        try Leftovers.putBackSidecars(paths)
        try FileManager.default.removeItem(atPath: damaged.path + "-attempt")
        #expect(try damaged.digest() == before)
        // The same state, if a run without recovery comes first.
        try record.write(folder, paths)
        _ = try DamagedOriginal.keep(paths, folder, status.identity, &record).takeSidecars()
        let error = try #require(
            try storeError { try EncryptionUpgrade(path: damaged.path, provider: TestKeys.provider()).run() })
        #expect(error.code == .corrupt)
        #expect(try !damaged.folder.names.contains { $0.hasPrefix("app.db-damaged") })
        #expect(try Damaged.rows(damaged.path, key: nil) == Damaged.allRows)
    }

    @Test(
        "A log without a commit does not stop the log from being restored", arguments: ["nothing", "header", "frame"])
    func putBackOverUncommittedLog(content: String) throws {
        let damaged = try Damaged()
        let log = try damaged.bytes("app.db-wal")
        let paths = try setAside(damaged)
        let length = ["nothing": 0, "header": 32, "frame": 32 + 24 + damaged.pageSize]
        try log.prefix(try #require(length[content])).write(to: URL(filePath: paths.wal))
        try damaged.folder.write("", to: "app.db-shm")
        try Leftovers.putBackSidecars(paths)
        #expect(try damaged.bytes("app.db-wal") == log)
        #expect(try damaged.folder.names == ["app.db", "app.db-attempt", "app.db-wal"])
    }

    @Test("A journal that is not hot does not stop the journal from being restored", arguments: [0, 512])
    func putBackOverJournal(length: Int) throws {
        let damaged = try Damaged(journal: "DELETE")
        try damaged.folder.write("a journal", to: "app.db-journal")
        let paths = try setAside(damaged)
        try Data(count: length).write(to: URL(filePath: paths.journal))
        try Leftovers.putBackSidecars(paths)
        #expect(try damaged.bytes("app.db-journal") == Data("a journal".utf8))
        #expect(try damaged.folder.names == ["app.db", "app.db-attempt", "app.db-journal"])
    }

    @Test("The advice for a journal that cannot be restored is to restore it, or to recover the database without it")
    func journalAdvice() throws {
        let damaged = try Damaged(journal: "DELETE")
        try damaged.folder.write("a journal", to: "app.db-journal")
        _ = try setAside(damaged)
        let file = try FileHandle(forUpdating: URL(filePath: damaged.path))
        try file.write(contentsOf: Data("SQLite".utf8))
        try file.close()
        let error = try #require(try storeError { try damaged.recovery().runLocked() })
        #expect(error.code == .staleSidecar, "\(error)")
        #expect(error.advice.contains("app.db-damaged-journal to \(damaged.path)-journal"), "\(error)")
        #expect(error.advice.contains("recover --in-place") && !error.advice.contains("rows"), "\(error)")
    }

    @Test("A database whose log was set aside is not recovered without the log into a new file")
    func recoverWithoutLog() throws {
        let damaged = try Damaged()
        let paths = try setAside(damaged)
        let before = try damaged.digest()
        let error = try storeError {
            try DatabaseRecovery(
                of: paths, provider: TestKeys.provider(), formats: [CipherSettings()],
                to: damaged.folder.path("new.db"), targetProvider: nil, template: nil, options: ConversionOptions()
            ).run()
        }
        #expect(error?.code == .needsRecovery, "\(String(describing: error))")
        #expect(try damaged.digest() == before)
    }

    @Test("A diagnosis names the log that was set aside")
    func diagnosis() throws {
        let damaged = try Damaged()
        let causes = try Diagnostician(setAside(damaged), DiagnosisOptions()).run(keyText: nil).causes
        #expect(causes.map(\.kind) == [.setAsideSidecar], "\(causes)")
        #expect(causes.first?.detail.contains("app.db-damaged-wal") == true)
    }

    @Test("A log that was set aside is not ignored after the files were copied to another folder")
    func copiedFolder() throws {
        let damaged = try Damaged()
        _ = try setAside(damaged)
        let other = try TemporaryFolder()
        for name in try damaged.folder.names { try damaged.bytes(name).write(to: URL(filePath: other.path(name))) }
        let paths = try DatabasePaths(other.path("app.db"))
        let before = try FolderDigest(other.url)
        let recovery = InPlaceRecovery(
            of: paths, provider: TestKeys.provider(), formats: [CipherSettings()], options: ConversionOptions())
        let runs: [() throws -> Void] = [
            { _ = try recovery.runLocked() },
            { _ = try EncryptionUpgrade(path: paths.database, provider: TestKeys.provider()).run() },
            { try DatabaseReader(Inspector(paths)).read(provider: TestKeys.provider(), formats: []) { _, _ in } },
        ]
        for run in runs {
            let error = try #require(try storeError { try run() })
            #expect(error.code == .staleSidecar && error.detail.contains("app.db-damaged-wal"), "\(error)")
        }
        #expect(try Inspector(paths).inspect(provider: nil, formats: []).state == .staleSidecar)
        #expect(try FolderDigest(other.url) == before)
        try FileManager.default.moveItem(atPath: other.path("app.db-damaged-wal"), toPath: paths.wal)
        #expect(try recovery.runLocked().rows == Damaged.allRows.count)
    }

    @Test("A log that was set aside is not ignored after the copied database has been changed")
    func copiedAndChanged() throws {
        let key = try TestKeys.rawWithSalt()
        let damaged = try Damaged(key: key)
        _ = try setAside(damaged)
        let other = try TemporaryFolder()
        for name in try damaged.folder.names { try damaged.bytes(name).write(to: URL(filePath: other.path(name))) }
        let connection = try Connection(
            path: other.path("app.db"), mode: .readWrite, key: key, settings: CipherSettings())
        try connection.execute("DELETE FROM t WHERE a = 'second'")
        connection.close()
        let upgrade = try EncryptionUpgrade(path: other.path("app.db"), provider: TestKeys.provider { key })
        #expect(try storeError { try upgrade.run() }?.code == .staleSidecar)
    }

    @Test(
        "A recovered database is read although its files were copied before the run had removed its record",
        arguments: [false, true])
    func copiedAfterSwap(keyHasSalt: Bool) throws {
        let key = try keyHasSalt ? TestKeys.rawWithSalt() : TestKeys.raw()
        let damaged = try Damaged(key: key)
        _ = try damaged.recovery(TestKeys.provider { key }).runLocked()
        let paths = try DatabasePaths(damaged.path)
        var record = try AttemptRecord(attempts: 1, wasWriteAheadLog: true, original: 1)
        record.copy = 2
        record.keptAs = 1
        try record.write(paths.openFolder(), paths)
        #expect(try damaged.folder.names.contains("app.db-damaged-wal"))
        // SQLite never writes the page that contains the lock bytes, so both files have zeros there.
        let size = try max(damaged.bytes("app.db").count, damaged.bytes("app.db-damaged").count)
        for name in ["app.db", "app.db-damaged"] {
            let file = try FileHandle(forWritingTo: URL(filePath: damaged.folder.path(name)))
            try file.truncate(atOffset: UInt64(size + damaged.pageSize))
            try file.close()
        }
        #expect(try damaged.upgrade(TestKeys.provider { key }).run().outcome == .alreadyEncrypted)
    }

    @Test("A log that was set aside is never restored over newer changes", arguments: [true, false])
    func newerChanges(areInLog: Bool) throws {
        let damaged = try Damaged()
        _ = try setAside(damaged)
        if areInLog {
            try damaged.folder.write("a log of another program", to: "app.db-wal")
        } else {
            let file = try FileHandle(forUpdating: URL(filePath: damaged.path))
            let start = try #require(try file.read(upToCount: 16))
            try file.seek(toOffset: 0)
            try file.write(contentsOf: start)
            try file.close()
        }
        let before = try damaged.digest()
        let runs: [() throws -> Void] = [
            { _ = try damaged.upgrade().run() }, { _ = try damaged.recovery().runLocked() },
        ]
        for run in runs + runs {
            let error = try #require(try storeError { try run() })
            #expect(error.code == .staleSidecar && error.detail.contains("app.db-damaged-wal"), "\(error)")
            #expect(try damaged.digest() == before)
        }
    }

    @Test("A database whose log was set aside is not read without the log")
    func readWithoutLog() throws {
        let damaged = try Damaged()
        let paths = try setAside(damaged)
        let error = try storeError {
            try DatabaseReader(Inspector(paths)).read(provider: TestKeys.provider(), formats: []) { _, _ in }
        }
        #expect(error?.code == .needsRecovery, "\(String(describing: error))")
        #expect(error?.detail.contains("app.db-damaged-wal") == true)
    }

    /// Leaves the state after a kill between setting the log aside and the swap.
    private func setAside(_ damaged: Damaged) throws -> DatabasePaths {
        let paths = try DatabasePaths(damaged.path)
        let folder = try paths.openFolder()
        let status = try #require(try folder.status(paths.name))
        var record = try AttemptRecord(attempts: 1, wasWriteAheadLog: true, original: status.identity.inode)
        try DamagedOriginal.keep(paths, folder, status.identity, &record).takeSidecars()
        #expect(try damaged.folder.names.prefix(3) == ["app.db", "app.db-attempt", "app.db-damaged"])
        return paths
    }

    @Test("A damaged file that lost its kept name in a power loss gets it back before its other name is removed")
    func nameLost() throws {
        let damaged = try Damaged()
        let file = try damaged.bytes("app.db")
        _ = try damaged.recovery().runLocked()
        let paths = try DatabasePaths(damaged.path)
        let folder = try paths.openFolder()
        var record = try AttemptRecord(
            attempts: 1, original: try #require(try folder.status("app.db-damaged")).identity.inode)
        record.copy = try #require(try folder.status("app.db")).identity.inode
        record.keptAs = 1
        try record.write(folder, paths)
        try folder.rename("app.db-damaged", to: record.copyName(paths))
        #expect(try damaged.upgrade().run().outcome == .alreadyEncrypted)
        #expect(
            try damaged.folder.names.filter { !$0.hasSuffix("-shm") } == [
                "app.db", "app.db-damaged", "app.db-damaged-wal",
            ])
        #expect(try damaged.bytes("app.db-damaged") == file)
    }

    @Test("A plaintext log that was set aside does not belong to the recovered database, though the files were copied")
    func copiedWithoutDamaged() throws {
        let damaged = try Damaged()
        let before = try damaged.bytes("app.db")
        _ = try damaged.recovery().runLocked()
        let paths = try DatabasePaths(damaged.path)
        var record = try AttemptRecord(attempts: 1, original: 1)
        (record.copy, record.keptAs) = (2, 1)
        try record.write(paths.openFolder(), paths)
        try FileManager.default.removeItem(atPath: damaged.path + "-damaged")
        #expect(try damaged.folder.names.contains("app.db-damaged-wal"))
        #expect(try damaged.upgrade().run().outcome == .alreadyEncrypted)
        // Beside the damaged database itself, the log is not ignored.
        try record.write(paths.openFolder(), paths)
        try before.write(to: URL(filePath: damaged.path))
        #expect(try storeError { try damaged.upgrade().run() }?.code == .staleSidecar)
        #expect(try damaged.folder.names.contains("app.db-damaged-wal"))
    }
}
