internal import CipherDatabaseConversion
internal import CipherErrors
import CipherKeyProviders
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Logs whose later commits SQLite does not read, because an earlier part of the log is damaged.
@Suite struct LostCommitsTests {
    /// A part of a log in which one byte is damaged.
    enum Place: CaseIterable, Sendable {
        case headerSize, headerSalt, headerSum, firstFrame, thirdCommit, saltOfThirdCommit

        func offset(in log: [UInt8]) -> Int {
            let stride = 24 + Int(log.big32(8))
            let commits = Swift.stride(from: 32, to: log.count, by: stride).filter { log.big32($0 + 4) > 0 }
            return switch self {
            case .headerSize: 9
            case .headerSalt: 17
            case .headerSum: 26
            case .firstFrame: 32 + 24 + 100
            case .thirdCommit: commits[2] + 24 + 100
            case .saltOfThirdCommit: commits[2] + 12
            }
        }
    }

    /// Returns a database with six commits in its log.
    private static func file(key: CipherKey? = nil, damaged place: Place?) throws -> LegacyFile {
        let file = try LegacyFile(unclosed: true) { connection in
            if let key { try connection.setKey(key, settings: CipherSettings()) }
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript("PRAGMA wal_autocheckpoint = 0; CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
            _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
            for number in 1...6 {
                try connection.execute(SQL(text: "INSERT INTO t VALUES (\(number), zeroblob(1500))"))
            }
        }
        if let place { try change(file.path + "-wal") { $0[place.offset(in: $0)] ^= 1 } }
        return file
    }

    private static func change(_ path: String, _ change: (inout [UInt8]) throws -> Void) throws {
        var bytes = try bytes(path)
        try change(&bytes)
        try Data(bytes).write(to: URL(filePath: path))
    }

    private static func bytes(_ path: String) throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(filePath: path))) }

    private static func upgrade(_ file: LegacyFile, _ onDamage: OnDamage) throws -> EncryptionUpgrade {
        var options = ConversionOptions()
        options.onDamage = onDamage
        return try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options)
    }

    private static func isWarning(_ text: String) -> Bool {
        text.contains("the -wal is damaged") || isWarningOfCopies(text)
    }

    private static func isWarningOfCopies(_ text: String) -> Bool { text.contains("the -wal was damaged") }

    private static func loses(_ log: [UInt8]) throws -> Bool { try LogHeader.losesCommits(HeldBytes(log)) }

    // MARK: Logs

    @Test("Commits after damage in a log are found, wherever the damage is", arguments: Place.allCases)
    func found(place: Place) throws {
        for key in [nil, try TestKeys.raw()] {
            let file = try Self.file(key: key, damaged: place)
            #expect(try Self.loses(Self.bytes(file.path + "-wal")))
        }
    }

    @Test("A log that ends in an incomplete commit has lost none, wherever the commit ends or is damaged")
    func torn() throws {
        let file = try Self.file(damaged: nil)
        let log = try Self.bytes(file.path + "-wal")
        let stride = 24 + Int(log.big32(8))
        #expect(try !Self.loses(log))
        for end in Swift.stride(from: 0, to: log.count, by: 512) {
            #expect(try !Self.loses(Array(log[..<end])), "cut at \(end)")
            #expect(try !Self.loses(log[..<end] + [UInt8](repeating: 0, count: log.count - end)), "zeros from \(end)")
        }
        let frames = Swift.stride(from: 32, to: log.count, by: stride)
        let previous = try #require(frames.filter { log.big32($0 + 4) > 0 }.dropLast().last)
        for frame in frames where frame > previous {
            for offset in [8, 16, 24] {
                var changed = log
                changed[frame + offset] ^= 1
                #expect(try !Self.loses(changed), "frame at \(frame)")
            }
        }
    }

    @Test("Frames from before a reset, and frames of a transaction that was rolled back, are not lost commits")
    func obsolete() throws {
        for script in [
            "PRAGMA wal_checkpoint(RESTART); INSERT INTO t VALUES (99, 9)",
            "PRAGMA wal_checkpoint(RESTART); BEGIN; UPDATE t SET b = zeroblob(30000); ROLLBACK; DELETE FROM t WHERE a = 1",
            "BEGIN; UPDATE t SET b = zeroblob(30000); ROLLBACK; DELETE FROM t WHERE a = 1; DELETE FROM t WHERE a = 2",
        ] {
            let file = try LegacyFile(unclosed: true) { connection in
                _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
                try connection.executeScript("PRAGMA cache_size = 2; PRAGMA wal_autocheckpoint = 0")
                try connection.executeScript("CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
                for number in 1...20 { try connection.execute(SQL(text: "INSERT INTO t VALUES (\(number), '')")) }
                try connection.executeScript(text: script)
            }
            #expect(try !Self.loses(Self.bytes(file.path + "-wal")), "\(script)")
        }
    }

    // MARK: Operations

    @Test(
        "An encryption keeps copies of the database and its damaged log, and warns", arguments: Place.allCases,
        [OnDamage.rebuildIndexes, .recover])
    func keepsOriginal(place: Place, onDamage: OnDamage) throws {
        let file = try Self.file(damaged: place)
        let (database, log) = try (Self.bytes(file.path), Self.bytes(file.path + "-wal"))
        let report = try Self.upgrade(file, onDamage).run()
        #expect(report.outcome == .encrypted)
        #expect(report.warnings.contains { Self.isWarning($0) && $0.contains("app.db-damaged-wal") }, "\(report)")
        #expect(try Self.bytes(file.path + "-damaged") == database)
        #expect(try Self.bytes(file.path + "-damaged-wal") == log)
        #expect(try !file.startsAsPlaintext)
    }

    @Test("With onDamage set to refuse, a damaged log is refused and nothing is changed", arguments: Place.allCases)
    func refuses(place: Place) throws {
        let file = try Self.file(damaged: place)
        let before = try file.digest()
        let error = try #require(try storeError { try Self.upgrade(file, .refuse).run() })
        #expect(error.code == .corrupt && Self.isWarning(error.detail), "\(error)")
        #expect(try file.digest() == before)
    }

    @Test("A database with a damaged log is recovered as incomplete, and kept", arguments: Place.allCases)
    func recovers(place: Place) throws {
        let file = try Self.file(key: TestKeys.raw(), damaged: place)
        let log = try Self.bytes(file.path + "-wal")
        let report = try InPlaceRecovery(
            of: DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()],
            options: ConversionOptions()
        ).runLocked()
        #expect(!report.complete && !report.wasSound && report.notes.contains(where: Self.isWarning), "\(report)")
        #expect(try Self.bytes(file.path + "-damaged-wal") == log)
    }

    @Test("A second failed run keeps no second copy of a damaged log")
    func keptOnce() throws {
        let file = try Self.file(damaged: .thirdCommit)
        let paths = try DatabasePaths(file.path)
        for _ in 1...2 {
            try LostCommits.keep(paths, .rebuildIndexes, timeout: .zero)
            #expect(
                try file.folder.names.filter { !$0.hasSuffix("-shm") }
                    == ["app.db", "app.db-attempt", "app.db-damaged", "app.db-damaged-wal", "app.db-wal"])
        }
    }

    @Test("Commits that replace a part of the lost ones cause no further copy")
    func replaced() throws {
        let file = try Self.file(damaged: .thirdCommit)
        let paths = try DatabasePaths(file.path)
        try LostCommits.keep(paths, .rebuildIndexes, timeout: .zero)
        let kept = try Self.bytes(file.path + "-damaged-wal")
        let connection = try Connection(path: file.path, mode: .readWrite)
        _ = try connection.value(Int.self, "PRAGMA wal_autocheckpoint = 0")
        try connection.execute("INSERT INTO t VALUES (99, 9)")
        let files = try (Self.bytes(file.path), Self.bytes(file.path + "-wal"))
        connection.close()
        try Self.change(file.path) { $0 = files.0 }
        try Data(files.1).write(to: URL(filePath: file.path + "-wal"))
        #expect(try files.1 != kept && Self.loses(files.1))
        try LostCommits.keep(paths, .rebuildIndexes, timeout: .zero)
        #expect(try file.folder.names.filter { $0.contains("damaged") } == ["app.db-damaged", "app.db-damaged-wal"])
        #expect(try Self.upgrade(file, .rebuildIndexes).run().outcome == .encrypted)
        #expect(try file.folder.names.filter { $0.contains("damaged") } == ["app.db-damaged", "app.db-damaged-wal"])
    }

    @Test(
        "If the run that kept a damaged log was killed, each later run reports the copies until they are deleted",
        arguments: [false, true])
    func reportedLater(isEncrypted: Bool) throws {
        let key = isEncrypted ? try TestKeys.raw() : nil
        let file = try Self.file(key: key, damaged: .thirdCommit)
        try LostCommits.keep(DatabasePaths(file.path), .rebuildIndexes, timeout: .zero)
        // SQLite removes the log when the last connection is closed.
        try file.read(key: key) { try $0.execute("DELETE FROM t WHERE a = 1") }
        #expect(try !file.folder.names.contains("app.db-wal"))
        for _ in 1...3 {
            let report = try Self.upgrade(file, .rebuildIndexes).run()
            #expect(report.warnings.filter(Self.isWarningOfCopies).count == 1, "\(report.warnings)")
            #expect(report.warnings.contains { $0.contains("in plaintext") } == !isEncrypted)
        }
        for name in ["app.db-damaged", "app.db-damaged-wal"] {
            try FileManager.default.removeItem(atPath: file.folder.path(name))
        }
        #expect(try Self.upgrade(file, .rebuildIndexes).run().warnings.besidesLeases.isEmpty)
        #expect(try file.folder.names.filter { !["app.db-wal", "app.db-shm"].contains($0) } == ["app.db"])
    }

    /// Recovers a database in place after a page of it was damaged.
    private static func recover(_ file: LegacyFile) throws {
        try change(file.path) { bytes in
            let size = 4096
            bytes.replaceSubrange(bytes.count - size..<bytes.count, with: [UInt8](repeating: 0xff, count: size))
        }
        let report = try InPlaceRecovery(
            of: DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()],
            options: ConversionOptions()
        ).runLocked()
        #expect(!report.wasSound, "\(report)")
    }

    @Test("A backup that replaces a recovered database is used, although copies of a damaged log are still kept")
    func restoredAfterRecovery() throws {
        let file = try Self.file(damaged: .thirdCommit)
        #expect(try Self.upgrade(file, .rebuildIndexes).run().outcome == .encrypted)
        let backup = file.folder.path("backup.db")
        try FileManager.default.copyItem(atPath: file.path, toPath: backup)
        try Self.recover(file)
        try #require(file.folder.names.contains("app.db-damaged-2"))
        // The recovery of a database that a killed writer has left also keeps a log.
        try file.folder.write("a log", to: "app.db-damaged-2-wal")
        try FileManager.default.removeItem(atPath: file.path)
        try FileManager.default.moveItem(atPath: backup, toPath: file.path)
        #expect(try Self.upgrade(file, .rebuildIndexes).run().outcome == .alreadyEncrypted)
    }

    @Test("A damaged file that is kept under the name of deleted copies is not reported as copies of a damaged log")
    func reusedName() throws {
        let file = try Self.file(damaged: .thirdCommit)
        #expect(try Self.upgrade(file, .rebuildIndexes).run().warnings.contains(where: Self.isWarning))
        for name in ["app.db-damaged", "app.db-damaged-wal"] {
            try FileManager.default.removeItem(atPath: file.folder.path(name))
        }
        try Self.recover(file)
        #expect(try file.folder.names.contains("app.db-damaged"))
        let report = try Self.upgrade(file, .rebuildIndexes).run()
        #expect(!report.warnings.contains(where: Self.isWarning), "\(report)")
    }

    @Test(
        "If an opening fails after it has kept a damaged log, the next opening reports the copies",
        arguments: [false, true])
    func reportedByNextOpening(isEncrypted: Bool) throws {
        let file = try Self.file(key: isEncrypted ? TestKeys.raw() : nil, damaged: .thirdCommit)
        var configuration = OpeningFixture.configuration()
        configuration.encryption.isEnabled = isEncrypted
        let opening = try StoreOpening(
            configuration: configuration, directory: file.folder.url.path(percentEncoded: false),
            provider: TestKeys.provider(), options: ConversionOptions())
        #expect(throws: CancellationError.self) { try opening.run { _ in throw CancellationError() } }
        #expect(try !LostCommits.exist(DatabasePaths(file.path)))
        for _ in 1...2 {
            #expect(try opening.run().report.warnings.filter(Self.isWarningOfCopies).count == 1)
        }
    }

    @Test("A damaged log is kept before a run finishes what a killed one has left")
    func keptBeforeFinishing() throws {
        let file = try Self.file(key: TestKeys.raw(), damaged: .thirdCommit)
        _ = try KilledRun(file.folder, wasWriteAheadLog: true)
        let log = try Self.bytes(file.path + "-wal")
        let report = try Self.upgrade(file, .rebuildIndexes).run()
        #expect(report.outcome == .alreadyEncrypted)
        #expect(try Self.bytes(file.path + "-damaged-wal") == log)
        #expect(report.warnings.contains(where: Self.isWarningOfCopies), "\(report.warnings)")
    }

    @Test("A damaged log without a database is refused as the log of another one, as an undamaged log is")
    func withoutDatabase() throws {
        for place in [nil, Place.thirdCommit] {
            let file = try Self.file(key: TestKeys.raw(), damaged: place)
            try FileManager.default.removeItem(atPath: file.path)
            #expect(try storeError { try OpeningFixture.open(file.folder) }?.code == .staleSidecar)
        }
    }

    @Test("The key change and the decryption of a database keep copies of its damaged log, and warn")
    func encrypted() throws {
        for decrypts in [false, true] {
            let file = try Self.file(key: TestKeys.raw(), damaged: .thirdCommit)
            let log = try Self.bytes(file.path + "-wal")
            let report =
                try decrypts
                ? Decryption(
                    DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()],
                    options: ConversionOptions()
                ).run()
                : Rekeying(
                    at: DatabasePaths(file.path), oldKey: TestKeys.provider(),
                    newKey: TestKeys.provider { try TestKeys.raw(8) }, formats: [CipherSettings()],
                    newSettings: CipherSettings(), options: ConversionOptions()
                ).run()
            #expect(report.warnings.contains(where: Self.isWarning), "\(report)")
            #expect(try Self.bytes(file.path + "-damaged-wal") == log)
            let isAboutKey = report.warnings.contains { $0.contains("-damaged may be encrypted with the previous key") }
            #expect(isAboutKey != decrypts, "\(report)")
        }
    }

    @Test(
        "A log or journal with a damaged header, left without its database, is refused like an undamaged one",
        arguments: [nil, 10, 26], [true, false])
    func withoutDatabase(damaged offset: Int?, isEmpty: Bool) throws {
        for ending in ["-wal", "-journal"] {
            let file =
                try ending == "-wal"
                ? Self.file(damaged: nil)
                : LegacyFile(unclosed: true) { connection in
                    try connection.executeScript(
                        """
                        PRAGMA cache_size = 1; CREATE TABLE t(a, b);
                        INSERT INTO t VALUES (1, zeroblob(20000)), (2, zeroblob(20000));
                        BEGIN; UPDATE t SET b = hex(zeroblob(20000));
                        """)
                }
            // SQLite deletes a journal whose header was overwritten with zeros, because its transaction has ended.
            if let offset {
                try Self.change(file.path + ending) { $0[ending == "-wal" ? offset : max(offset, 22)] ^= 0x11 }
            }
            try FileManager.default.removeItem(atPath: file.path)
            if isEmpty { try file.folder.write("", to: "app.db") }
            let before = try file.digest()
            #expect(try Inspector(DatabasePaths(file.path)).surface() == .staleSidecar, "\(ending)")
            #expect(try storeError { try Self.upgrade(file, .recover).run() }?.code == .staleSidecar, "\(ending)")
            #expect(try file.digest() == before)
        }
    }

    @Test("The verification of a database reports a damaged log, and a backup warns about it")
    func reported() throws {
        let file = try Self.file(key: TestKeys.raw(), damaged: .thirdCommit)
        let before = try file.digest()
        let paths = try DatabasePaths(file.path)
        let found = try Verification.run(at: paths, provider: TestKeys.provider(), formats: [CipherSettings()])
        #expect(!found.isSound && found.complaints.contains(where: Self.isWarning))
        let target = try TemporaryFolder()
        let report = try FileBackup(
            of: paths, provider: TestKeys.provider(), formats: [CipherSettings()], to: target.path("backup.db"),
            backupProvider: nil, options: ConversionOptions()
        ).run()
        #expect(report.warnings.contains(where: Self.isWarning), "\(report)")
        #expect(try file.digest() == before)
    }
}
