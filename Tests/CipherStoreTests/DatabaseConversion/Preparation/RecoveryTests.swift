internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// The leftovers of killed runs, and runs that end early.
struct RecoveryTests {
    private typealias Fixture = OpeningFixture

    /// The leftovers of a kill, by when it happened.
    enum Leftover: CaseIterable {
        case recordWithoutPermissions, copyWithoutIdentity, copy, backup

        func leave(_ folder: TemporaryFolder) throws {
            if self == .recordWithoutPermissions {
                try folder.write("", to: "app.db-attempt", mode: 0)
                return
            }
            var killed = try KilledRun(folder)
            switch self {
            case .recordWithoutPermissions: return
            case .copyWithoutIdentity: try folder.write("", to: killed.copyName)
            case .copy: try killed.leaveCopy()
            case .backup: try folder.write("half a backup", to: killed.unfinishedBackupName)
            }
        }
    }

    /// Names that earlier versions used, and others that a user may have chosen.
    static let strangers = [
        "app.db-upgrade", "app.db-upgrade-journal", "app.db-upgrade-wal", "app.db-upgrade-shm", "app.db-plaintext-new",
        "app.db-attempt-new", "app.db-upgrade-0123456789abcdef", "app.db-plaintext-0123456789abcdef",
    ]

    private func upgrade(
        _ file: LegacyFile, _ change: (inout ConversionOptions) -> Void = { _ in }
    ) throws -> EncryptionReport {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        change(&options)
        return try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
    }

    @Test("A leftover beside a plaintext file is discarded", arguments: Leftover.allCases)
    func besidePlaintext(leftover: Leftover) throws {
        let file = try Fixture.file(version: 23)
        try leftover.leave(file.folder)
        #expect(try upgrade(file).outcome == .encrypted)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
        #expect(try file.folder.names == ["app.db"])
    }

    @Test("A leftover beside an encrypted file is removed", arguments: Leftover.allCases)
    func besideEncrypted(leftover: Leftover) throws {
        let file = try Fixture.file(version: 23, encryptedWith: TestKeys.raw())
        try leftover.leave(file.folder)
        #expect(try upgrade(file).outcome == .alreadyEncrypted)
        #expect(try file.folder.names.filter { !["app.db-wal", "app.db-shm"].contains($0) } == ["app.db"])
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test(
        "The spent journal of a killed change of journal mode is removed, whichever run comes next",
        arguments: [0, 512, 4616], ["DELETE", "WAL"])
    func spentJournal(size: Int, mode: String) throws {
        // A journal's header consists of zeros until the journal is synced, and the file is written only after that.
        let encrypted = try Fixture.file(version: 23, encryptedWith: TestKeys.raw(), journal: mode)
        _ = try KilledRun(encrypted.folder, wasWriteAheadLog: mode == "WAL")
        try Data(count: size).write(to: URL(filePath: encrypted.path + "-journal"))
        #expect(try upgrade(encrypted).outcome == .alreadyEncrypted)
        #expect(try encrypted.folder.names == ["app.db"])
        #expect(try Fixture.rows(encrypted, key: TestKeys.raw()) == Fixture.allRows)

        let plaintext = try Fixture.file(version: 23, journal: mode)
        _ = try KilledRun(plaintext.folder, wasWriteAheadLog: mode == "WAL")
        try Data(count: size).write(to: URL(filePath: plaintext.path + "-journal"))
        let decryption = try Decryption(
            path: plaintext.path, provider: TestKeys.provider(), formats: [CipherSettings()],
            options: ConversionOptions())
        #expect(try decryption.run().outcome == .alreadyPlaintext)
        #expect(try plaintext.folder.names == ["app.db"])
        #expect(try Fixture.rows(plaintext, key: nil) == Fixture.allRows)
    }

    @Test("A leftover beside an encrypted file whose key does not fit stays", arguments: Leftover.allCases)
    func besideForeign(leftover: Leftover) throws {
        let file = try Fixture.file(version: 23, encryptedWith: TestKeys.raw(8))
        try leftover.leave(file.folder)
        let before = try file.digest()
        #expect(try storeError { try upgrade(file) }?.code == .keyDoesNotFit)
        #expect(try file.digest() == before)
    }

    @Test("A leftover without a database does not become the database", arguments: Leftover.allCases)
    func besideNothing(leftover: Leftover) throws {
        let folder = try TemporaryFolder()
        try leftover.leave(folder)
        #expect(try Fixture.open(folder).report.outcome == .created)
        #expect(try folder.names == ["app.db"])
    }

    @Test("The journal of a missing database does not truncate the new one")
    func strayJournal() throws {
        let folder = try TemporaryFolder()
        var header: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0]
        header += [0, 0, 2, 0, 0, 0, 16, 0] + [UInt8](repeating: 0, count: 484)
        try Data(header).write(to: folder.url.appending(path: "app.db-journal"))
        #expect(try Fixture.open(folder).report.outcome == .created)
        #expect(try folder.names == ["app.db"])
        #expect(try Fixture.open(folder).report.outcome == .opened)
    }

    @Test("The sidecars of a database that another program creates before they are removed are kept")
    func sidecarsOfNewDatabase() throws {
        let folder = try TemporaryFolder()
        let paths = try DatabasePaths(folder.path("app.db"))
        for name in ["app.db-wal", "app.db-shm", "app.db-journal"] { try folder.write("", to: name) }
        try folder.write("", to: "app.db")
        try paths.removeSidecarsOfMissing()
        #expect(try folder.names == ["app.db", "app.db-journal", "app.db-shm", "app.db-wal"])
        try FileManager.default.removeItem(atPath: folder.path("app.db"))
        try paths.removeSidecarsOfMissing()
        #expect(try folder.names == [])
    }

    @Test("A first page torn by a power loss is restored from the journal, and only under the right key")
    func tornFirstPage() throws {
        let file = try Fixture.file(version: 23, encryptedWith: TestKeys.raw(), journal: "DELETE")
        let writer = try Connection(path: file.path, mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        defer { writer.close() }
        // Exceeds the cache, so that the journal is synced and pages are in the file.
        try writer.executeScript(
            """
            PRAGMA cache_size = 5; BEGIN; PRAGMA user_version = 99; CREATE TABLE filler(a);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            INSERT INTO filler SELECT zeroblob(3000) FROM n;
            """)
        let crashed = try TemporaryFolder()
        var database = try Data(contentsOf: URL(filePath: file.path))
        database.replaceSubrange(2_048..<4_096, with: Data(repeating: 7, count: 2_048))
        try database.write(to: crashed.url.appending(path: "app.db"))
        try FileManager.default.copyItem(atPath: file.path + "-journal", toPath: crashed.path("app.db-journal"))
        func run(_ key: @escaping @Sendable () throws -> CipherKey) throws -> EncryptionReport {
            try EncryptionUpgrade(path: crashed.path("app.db"), provider: TestKeys.provider(key)).run()
        }

        #expect(try storeError { try run { try TestKeys.raw(8) } }?.code == .keyDoesNotFit)
        #expect(try Data(contentsOf: crashed.url.appending(path: "app.db")) == database)
        #expect(try crashed.names == ["app.db", "app.db-journal"])
        #expect(try run { try TestKeys.raw() }.outcome == .alreadyEncrypted)
        let read = try Connection(
            path: crashed.path("app.db"), mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        defer { read.close() }
        #expect(try read.value(Int.self, "PRAGMA user_version") == 23)
    }

    @Test("A database beside the file, whatever its name, is not treated as a leftover", arguments: strangers)
    func stranger(name: String) throws {
        let file = try Fixture.file(version: 23)
        try FileManager.default.copyItem(atPath: file.path, toPath: file.folder.path(name))
        let before = try Data(contentsOf: file.folder.url.appending(path: name))
        #expect(try upgrade(file).outcome == .encrypted)
        #expect(try upgrade(file).outcome == .alreadyEncrypted)
        #expect(try Data(contentsOf: file.folder.url.appending(path: name)) == before)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("A database with the record's name is not taken for a record: upgrades are refused, and openings continue")
    func strangerInThePlaceOfTheRecord() throws {
        let file = try Fixture.file(version: 23)
        try FileManager.default.copyItem(atPath: file.path, toPath: file.folder.path("app.db-attempt"))
        let before = try file.digest()
        let error = try storeError { try upgrade(file) }
        #expect(error?.code == .nameTaken)
        #expect(error?.path?.hasSuffix("app.db-attempt") == true)
        #expect(try file.digest() == before)

        let encrypted = try Fixture.file(version: 26, encryptedWith: TestKeys.raw())
        try FileManager.default.copyItem(atPath: file.path, toPath: encrypted.folder.path("app.db-attempt"))
        #expect(try Fixture.open(encrypted.folder).report.outcome == .opened)
        #expect(try upgrade(encrypted).outcome == .alreadyEncrypted)
        #expect(try encrypted.folder.names.contains("app.db-attempt"))
    }

    @Test("After a kill right after the exchange of the names, the old file is removed")
    func exchanged() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let encrypted = try Fixture.file(version: 23, encryptedWith: TestKeys.raw(), journal: "DELETE")
        try FileManager.default.copyItem(atPath: encrypted.path, toPath: file.folder.path("proven"))
        var killed = try KilledRun(file.folder)
        try killed.exchange(with: "proven")
        #expect(try file.folder.names == ["app.db", "app.db-attempt", killed.copyName])
        #expect(try upgrade(file).outcome == .alreadyEncrypted)
        #expect(try file.folder.names.filter { !["app.db-wal", "app.db-shm"].contains($0) } == ["app.db"])
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("A file that another program put in the database's place is kept, and reported until it is gone")
    func strangerExchanged() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let killed = try exchangedWithStranger(file)
        for _ in 0..<2 {
            let report = try upgrade(file)
            #expect(report.outcome == .alreadyEncrypted)
            #expect(report.warnings.contains { $0.contains(killed.copyName) })
            #expect(try file.folder.names == ["app.db", "app.db-attempt", killed.copyName, "former"])
        }
        try FileManager.default.removeItem(atPath: file.folder.path(killed.copyName))
        #expect(try upgrade(file).warnings.besidesLeases == [])
        #expect(try file.folder.names == ["app.db", "former"])
    }

    @Test("A file that was reported is kept when the former database is put back")
    func reportedIsKept() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let killed = try exchangedWithStranger(file)
        let stranger = try Data(contentsOf: file.folder.url.appending(path: killed.copyName))
        #expect(try upgrade(file).outcome == .alreadyEncrypted)
        try FileManager.default.removeItem(atPath: file.path)
        try FileManager.default.moveItem(atPath: file.folder.path("former"), toPath: file.path)
        let report = try upgrade(file)
        #expect(report.outcome == .encrypted)
        #expect(report.warnings.contains { $0.contains(killed.copyName) })
        #expect(try Data(contentsOf: file.folder.url.appending(path: killed.copyName)) == stranger)
    }

    /// The state after a kill that follows the exchange of the copy for another program's file; the original is
    /// `former`.
    private func exchangedWithStranger(_ file: LegacyFile) throws -> KilledRun {
        let encrypted = try Fixture.file(version: 23, encryptedWith: TestKeys.raw(), journal: "DELETE")
        try FileManager.default.copyItem(atPath: encrypted.path, toPath: file.folder.path("proven"))
        try FileManager.default.copyItem(atPath: file.path, toPath: file.folder.path("restored"))
        var killed = try KilledRun(file.folder)
        try FileManager.default.moveItem(atPath: file.path, toPath: file.folder.path("former"))
        try FileManager.default.moveItem(atPath: file.folder.path("restored"), toPath: file.path)
        try killed.exchange(with: "proven")
        return killed
    }

    @Test("In a copy of the folder, the old file of a killed upgrade is reported at each launch until it is gone")
    func copiedFolder() throws {
        let (copied, name) = try copiedAfterExchange()
        let old = copied.url.appending(path: name)
        let before = try Data(contentsOf: old)
        for _ in 0..<3 {
            let report = try Fixture.open(copied).report
            #expect(report.outcome == .opened)
            #expect(report.warnings.contains { $0.contains(name) && $0.contains("plaintext") })
            #expect(try Data(contentsOf: old) == before)
        }
        try FileManager.default.removeItem(at: old)
        #expect(try Fixture.open(copied).report.warnings.besidesLeases == [])
        #expect(try copied.names.filter { !["app.db-wal", "app.db-shm"].contains($0) } == ["app.db"])
    }

    @Test("The old file of a killed upgrade, in a copied folder, is still reported after later conversions")
    func reportedAfterConversions() throws {
        let (copied, name) = try copiedAfterExchange()
        let maximum = Fixture.configuration(.init(sinceVersion: 24, maximumAttempts: 2))
        for number in UInt8(8)...10 {
            let rotation = KeyRotation(
                from: TestKeys.provider { try number == 8 ? TestKeys.raw() : TestKeys.raw(number - 1) },
                to: TestKeys.provider { try TestKeys.raw(number) })
            let report = try Fixture.open(copied, maximum, provider: rotation).report
            #expect(report.outcome == .rekeyed)
            #expect(report.warnings.count { $0.contains(name) } == 1, "\(report.warnings)")
            let next = try Fixture.open(copied, maximum) { try TestKeys.raw(number) }.report
            #expect(next.warnings.count { $0.contains(name) } == 1, "\(next.warnings)")
        }
        try FileManager.default.removeItem(atPath: copied.path(name))
        #expect(try Fixture.open(copied) { try TestKeys.raw(10) }.report.warnings.besidesLeases == [])
        #expect(try copied.names.filter { !["app.db-wal", "app.db-shm"].contains($0) } == ["app.db"])
    }

    @Test("An unrecognized file is reported by a launch with a shadow proof, and after it")
    func reportedByShadow() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let name = try besideRestored(file)
        var shadow = Configuration.Encryption(isEnabled: false, sinceVersion: 24)
        shadow.shadow = true
        for _ in 0..<2 {
            let report = try Fixture.open(file.folder, Fixture.configuration(shadow)).report
            #expect(report.outcome == .openedPlaintext)
            #expect(report.warnings.count { $0.contains(name) } == 1, "\(report.warnings)")
        }
        let report = try Fixture.open(file.folder).report
        #expect(report.outcome == .encrypted)
        #expect(report.warnings.count { $0.contains(name) } == 1, "\(report.warnings)")
        #expect(try Fixture.open(file.folder).report.warnings.count { $0.contains(name) } == 1)
    }

    @Test("An unrecognized file is reported by an encryption while the store is open, and after it")
    func reportedWhileOpen() async throws {
        let file = try Fixture.file(version: 3, journal: "DELETE", extra: "CREATE TABLE chat(uid TEXT, body TEXT);")
        let name = try besideRestored(file)
        var fixture = StoreFixture(file.folder)
        fixture.configuration.encryption.when = .whileOpen
        let store = try await fixture.open()
        let report = try await #require(store.conversion).value
        #expect(report.warnings.count { $0.contains(name) } == 1, "\(report.warnings)")
        await store.close()
        let next = try await fixture.open()
        #expect(next.report.outcome == .opened)
        #expect(next.report.warnings.count { $0.contains(name) } == 1, "\(next.report.warnings)")
        await next.close()
    }

    /// Leaves the state of ``exchangedWithStranger(_:)`` and puts the original back.
    ///
    /// - Returns: The name of the other program's file.
    private func besideRestored(_ file: LegacyFile) throws -> String {
        let killed = try exchangedWithStranger(file)
        try FileManager.default.removeItem(atPath: file.path)
        try FileManager.default.copyItem(atPath: file.folder.path("former"), toPath: file.path)
        return killed.copyName
    }

    /// Copies a folder, with the record, in which an upgrade was killed right after the exchange of the names.
    ///
    /// - Returns: The copy of the folder, and the name of the plaintext original in it.
    private func copiedAfterExchange() throws -> (folder: TemporaryFolder, name: String) {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let encrypted = try Fixture.file(version: 26, encryptedWith: TestKeys.raw(), journal: "DELETE")
        try FileManager.default.copyItem(atPath: encrypted.path, toPath: file.folder.path("proven"))
        var killed = try KilledRun(file.folder)
        try killed.exchange(with: "proven")
        let copied = try TemporaryFolder()
        for name in try file.folder.names {
            try FileManager.default.copyItem(atPath: file.folder.path(name), toPath: copied.path(name))
        }
        return (copied, killed.copyName)
    }

    @Test("The record of a file does not apply to another file with that name")
    func orphanedRecord() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        _ = try KilledRun(file.folder, attempts: 9, wasWriteAheadLog: true)
        try FileManager.default.moveItem(atPath: file.path, toPath: file.folder.path("former"))
        try FileManager.default.copyItem(atPath: file.folder.path("former"), toPath: file.path)
        #expect(try upgrade(file) { $0.maximumAttempts = 1 }.outcome == .encrypted)
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA journal_mode") } == "delete")
        #expect(try file.folder.names == ["app.db", "former"])
    }

    @Test(
        "An invalid number of attempts is ignored",
        arguments: ["9223372036854775807", "-1", "99999999999999999999"])
    func absurdRecord(number: String) throws {
        let file = try Fixture.file(version: 23)
        let inode = try #require(try FileSystem.status(file.path)).identity.inode
        try file.folder.write(
            "cipherstore attempt 1\n\(number) wal 0123456789abcdef \(inode) -\n", to: "app.db-attempt")
        #expect(try storeError { try upgrade(file) { $0.maximumAttempts = nil } } == nil)
        #expect(try file.folder.names == ["app.db"])
    }

    @Test("A folder in place of the record is reported, and nothing is changed")
    func folderInTheWay() throws {
        let file = try Fixture.file(version: 23)
        try FileManager.default.createDirectory(
            at: file.folder.url.appending(path: "app.db-attempt"), withIntermediateDirectories: false)
        let before = try file.digest()
        #expect(try storeError { try upgrade(file) }?.code == .nameTaken)
        #expect(try file.digest() == before)
    }

    @Test("WAL mode is restored after a run that was killed", arguments: [true, false])
    func journalMode(diedBeforeTheSwap: Bool) throws {
        let file = try Fixture.file(
            version: 23, encryptedWith: diedBeforeTheSwap ? nil : TestKeys.raw(), journal: "DELETE")
        _ = try KilledRun(file.folder, wasWriteAheadLog: true)
        #expect(try upgrade(file).outcome == (diedBeforeTheSwap ? .encrypted : .alreadyEncrypted))
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        #expect(try file.folder.names.filter { $0.hasPrefix("app.db-attempt") } == [])
    }

    @Test("After too many attempts the upgrade is refused, or the file is opened as it is")
    func attempts() throws {
        let file = try Fixture.file(version: 23)
        var killed = try KilledRun(file.folder, attempts: 3, wasWriteAheadLog: true)
        let before = try file.digest()
        let refusing = Fixture.configuration(.init(sinceVersion: 24, maximumAttempts: 3))
        let refusal = try #require(try storeError { try Fixture.open(file.folder, refusing) })
        #expect(refusal.code == .repeatedFailure)
        for setting in ["encryption.onRepeatedFailure", "encryption.when", "encryption.maximumAttempts"] {
            #expect(refusal.advice.contains("\(setting) "), "\(refusal)")
        }
        #expect(try file.digest() == before)
        let opening = Fixture.configuration(
            .init(sinceVersion: 24, maximumAttempts: 3, onRepeatedFailure: .openPlaintext))
        // The second launch finds a file whose version is that of the app.
        for _ in 0..<2 {
            let name = try killed.leaveCopy()
            let opened = try Fixture.open(file.folder, opening)
            #expect(opened.report.outcome == .openedPlaintext)
            #expect(opened.report.warnings.besidesLeases.count == 1)
            #expect(try !file.folder.names.contains(name))
            #expect(try Fixture.rows(file, key: nil) == Fixture.allRows)
        }
        // The file is still a legacy file, so the next release tries again.
        let patient = Fixture.configuration(.init(sinceVersion: 24, maximumAttempts: 9))
        #expect(try Fixture.open(file.folder, patient).report.outcome == .encrypted)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("After too many attempts the file is opened as it is, even if files of the killed runs cannot be removed")
    func attemptsUnremovable() throws {
        let file = try Fixture.file(version: 23)
        let killed = try KilledRun(file.folder, attempts: 3)
        // Nobody can remove a folder as if it were a file.
        let obstacle = file.folder.path(killed.unfinishedBackupName)
        try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
        let refusing = Fixture.configuration(.init(sinceVersion: 24, maximumAttempts: 3))
        #expect(try storeError { try Fixture.open(file.folder, refusing) }?.code == .repeatedFailure)
        let opening = Fixture.configuration(
            .init(sinceVersion: 24, maximumAttempts: 3, onRepeatedFailure: .openPlaintext))
        let opened = try Fixture.open(file.folder, opening)
        #expect(opened.report.outcome == .openedPlaintext)
        #expect(opened.report.warnings.contains { $0.contains(killed.unfinishedBackupName) })
        #expect(try Fixture.rows(file, key: nil) == Fixture.allRows)
    }

    @Test("A run that ends by itself is not counted as killed")
    func notCounted() throws {
        let file = try Fixture.file(version: 23)
        for _ in 0..<3 {
            let error = try storeError {
                try upgrade(file) { options in
                    let cancellation = UpgradeCancellation()
                    options.maximumAttempts = 1
                    options.cancellation = cancellation
                    options.progress = { if $0.stage == .building { cancellation.cancel() } }
                }
            }
            #expect(error?.code == .cancelled)
        }
        #expect(try upgrade(file) { $0.maximumAttempts = 1 }.outcome == .encrypted)
    }

    @Test("A run that ends by itself does not reset the count of killed runs", arguments: ["WAL", "DELETE"])
    func killedRunsStayCounted(journal: String) throws {
        let file = try Fixture.file(version: 23, journal: journal)
        var killed = try KilledRun(file.folder, attempts: 2)
        let copy = try killed.leaveCopy()
        for _ in 0..<2 {
            let error = try storeError {
                try upgrade(file) { options in
                    let cancellation = UpgradeCancellation()
                    options.cancellation = cancellation
                    options.progress = { if $0.stage == .building { cancellation.cancel() } }
                }
            }
            #expect(error?.code == .cancelled)
            #expect(try !file.folder.names.contains(copy))
        }
        #expect(try storeError { try upgrade(file) { $0.maximumAttempts = 2 } }?.code == .repeatedFailure)
        #expect(try upgrade(file) { $0.maximumAttempts = 3 }.outcome == .encrypted)
        #expect(try !file.folder.names.contains("app.db-attempt"))
    }

    @Test(
        "A run that another process's read ends is not counted as killed, and a later run restores WAL mode",
        arguments: [UpgradeStage.quiescing, .building])
    func notCountedWhileRead(stage: UpgradeStage) throws {
        // In the first stage, an earlier run that was killed had left WAL mode; in the second, this run leaves it.
        let file = try Fixture.file(version: 23, journal: stage == .quiescing ? "DELETE" : "WAL")
        if stage == .quiescing { _ = try KilledRun(file.folder, wasWriteAheadLog: true) }
        for _ in 0..<3 {
            let error = try storeError { try upgrade(file, whileReadFrom: stage) }
            #expect(error?.code == .busy, "\(String(describing: error))")
            #expect(error?.change == (stage == .quiescing ? .nothing : .noRow))
            #expect(try file.folder.names == ["app.db", "app.db-attempt"])
        }
        #expect(try upgrade(file) { $0.maximumAttempts = 2 }.outcome == .encrypted)
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        #expect(try file.folder.names.filter { $0.hasPrefix("app.db-attempt") } == [])
    }

    /// Upgrades a file that another process opens and reads from a stage until the run has ended.
    private func upgrade(_ file: LegacyFile, whileReadFrom stage: UpgradeStage) throws {
        let (gate, reader) = (Gate(), Started())
        defer { _ = try? reader.process?.wait() }
        _ = try upgrade(file) { [path = file.path] options in
            options.maximumAttempts = 2
            options.progress = { progress in
                guard progress.stage == stage else { return }
                gate.arrive()
                // The first stage is reported again after the check that no other process has the file open.
                guard gate.count == (stage == .quiescing ? 2 : 1) else { return }
                do {
                    let started = try TestProgram.built("CipherLockHolder").start(["sql", path])
                    reader.process = started
                    #expect(try started.line() == "ready")
                    #expect(try started.ask("BEGIN") == "ok")
                    #expect(try started.ask("SELECT count(*) > 0 FROM sqlite_master") == "ok 1")
                } catch {
                    Issue.record(error)
                }
            }
        }
    }

    @Test(
        "A run that is canceled in any stage leaves the file and its journal mode unchanged",
        arguments: UpgradeStage.allCases.filter { $0 != .migrating }, [true, false])
    func cancel(stage: UpgradeStage, keepBackup: Bool) throws {
        for journal in ["WAL", "DELETE"] {
            let file = try Fixture.file(version: 23, journal: journal)
            let original = try file.originalDump()
            let error = try storeError {
                try upgrade(file) { options in
                    let cancellation = UpgradeCancellation()
                    options.keepBackup = keepBackup
                    options.cancellation = cancellation
                    options.progress = { if $0.stage == stage { cancellation.cancel() } }
                }
            }
            #expect(error?.code == .cancelled)
            #expect(try file.folder.names.filter { $0 != "app.db-wal" && $0 != "app.db-shm" } == ["app.db"])
            #expect(try file.startsAsPlaintext)
            #expect(try file.dump(key: nil) == original)
            #expect(try upgrade(file) { $0.keepBackup = keepBackup }.outcome == .encrypted)
            #expect(try file.dump(key: TestKeys.raw()) == original)
        }
    }
}
