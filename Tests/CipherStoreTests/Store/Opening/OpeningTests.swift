internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The decision table on real files, in complete launches.
struct OpeningTests {
    private typealias Fixture = OpeningFixture

    @Test("If there is no file, an encrypted database of the current version is created")
    func fresh() throws {
        let folder = try TemporaryFolder()
        #expect(try Fixture.open(folder).report.outcome == .created)
        #expect(try folder.names == ["app.db"])
        #expect(try Fixture.open(folder).report.outcome == .opened)
        let file = try LegacyFile(copying: folder.path("app.db"))
        #expect(try !file.startsAsPlaintext)
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(Int.self, "PRAGMA user_version") } == 26)
    }

    @Test("The key of a file is derived once for all stores of the process, and a wrong key never gets it")
    func derivedOnce() throws {
        let folder = try TemporaryFolder()
        let first = try Fixture.open(folder) { try .passphrase("a passphrase") }
        let second = try Fixture.open(folder) { try .passphrase("a passphrase") }
        let held = try #require(first.fileKey?.key.keyBytes)
        #expect(second.fileKey?.key.keyBytes === held)
        let error = #expect(throws: StoreError.self) {
            try Fixture.open(folder) { try .passphrase("another passphrase") }
        }
        #expect(error?.code == .keyDoesNotFit)
    }

    @Test("A file of 0 bytes becomes an encrypted database that keeps its mode", arguments: [0o600, 0o640])
    func empty(mode: Int) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("", to: "app.db", mode: mode)
        #expect(try Fixture.open(folder).report.outcome == .created)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == mode)
        #expect(try folder.names == ["app.db"])
        #expect(try Fixture.open(folder).report.outcome == .opened)
    }

    @Test(
        "A legacy file of every journal mode is encrypted with all its rows",
        arguments: ["WAL", "DELETE", "TRUNCATE", "PERSIST"])
    func legacy(journal: String) throws {
        let file = try Fixture.file(version: 23, journal: journal)
        let opened = try Fixture.open(file.folder)
        #expect(opened.report.outcome == .encrypted)
        #expect(opened.report.warnings.besidesLeases == [])
        #expect(opened.report.isUpdate)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
        #expect(try !file.startsAsPlaintext)
        #expect(try Fixture.open(file.folder).report.outcome == .opened)
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(Int.self, "PRAGMA user_version") } == 26)
    }

    @Test("A plaintext file that was opened with encryption off is encrypted once it is on, whatever its version")
    func stamped() throws {
        let file = try Fixture.file(version: 26)
        let off = Fixture.configuration(.init(isEnabled: false, sinceVersion: 24))
        #expect(try Fixture.open(file.folder, off).report.outcome == .openedPlaintext)
        #expect(try file.startsAsPlaintext)
        #expect(try Fixture.open(file.folder, off).report.outcome == .openedPlaintext)
        #expect(try Fixture.open(file.folder).report.outcome == .encrypted)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
        // The file is now encrypted, so the mark no longer counts.
        let refused = try storeError { try Fixture.open(file.folder, off) }
        #expect(refused?.code == .encryptionDisabled)
        // The words must suit both Swift and a configuration file.
        #expect(refused?.advice.contains("set encryption.whenDisabled to \"decrypt\"") == true)
    }

    @Test("A plaintext file opened as it is gets its version and its stamp in one commit", arguments: [0, 23])
    func stampedWithItsVersion(version: Int) throws {
        // A file without tables and without a version gets the event `created`, which alone counts as encrypted.
        let file =
            try version == 0
            ? LegacyFile { try $0.executeScript("CREATE TABLE t(a); DROP TABLE t") }
            : Fixture.file(version: version, journal: "DELETE")
        let header = { try #require(try FileHeader(DatabaseFile(path: file.path)).changeCounter) }
        let before = try header()
        let off = Fixture.configuration(.init(isEnabled: false, sinceVersion: 24))
        #expect(try Fixture.open(file.folder, off).report.outcome == .openedPlaintext)
        #expect(try header() == before + 1)
        #expect(try file.read(key: nil) { try HistoryTable.isStampedPlaintext($0) })
    }

    @Test("A plaintext file whose migration fails while encryption is off stays unchanged")
    func failedMigrationIsNotStamped() throws {
        struct Refusal: Error {}
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let before = try file.digest()
        var off = Fixture.configuration(.init(isEnabled: false))
        off.launch.upgrade = { _, _, _ in throw Refusal() }
        #expect(try storeError { try Fixture.open(file.folder, off) }?.code == .migration)
        #expect(try file.digest() == before)
    }

    @Test("A database that is created with encryption off is stamped before it has a version")
    func stampedFromTheBeginning() throws {
        let folder = try TemporaryFolder()
        var off = Fixture.configuration(.init(isEnabled: false))
        off.launch.firstInstall = { (connection) throws in
            // A kill between two transactions would leave a database that counts as an encrypted one.
            let isStamped = try HistoryTable.isStampedPlaintext(connection)
            #expect(isStamped)
        }
        #expect(try Fixture.open(folder, off).report.outcome == .created)
        #expect(try Fixture.open(folder, off).report.outcome == .openedPlaintext)
        #expect(try Fixture.open(folder, Fixture.configuration(.init())).report.outcome == .encrypted)
    }

    @Test("A database that another program creates during a first install keeps its journal")
    func journalOfOtherProgram() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("app.db")
        var configuration = Fixture.configuration()
        configuration.launch.firstInstall = { _ in
            try LegacyFile.write(path, script: "CREATE TABLE other(a)")
            // Until a writer syncs its journal, the journal has no valid header.
            try Data(count: 4096).write(to: URL(filePath: path + "-journal"))
        }
        #expect(try storeError { try Fixture.open(folder, configuration) }?.code == .busy)
        #expect(try folder.names == ["app.db", "app.db-journal"])
    }

    @Test(
        "With encryption off, an encrypted file is decrypted if configured, and encrypted again later")
    func decrypted() throws {
        let file = try Fixture.file(version: 24, encryptedWith: TestKeys.raw())
        let off = Fixture.configuration(.init(isEnabled: false, sinceVersion: 24, whenDisabled: .decrypt))
        let report = try Fixture.open(file.folder, off).report
        #expect(report.outcome == .decrypted)
        #expect(report.encryption?.rows == 3)
        #expect(try file.startsAsPlaintext)
        #expect(try Fixture.rows(file, key: nil) == Fixture.allRows)
        #expect(try Fixture.open(file.folder, off).report.outcome == .openedPlaintext)
        #expect(try Fixture.open(file.folder).report.outcome == .encrypted)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("A database that was encrypted before adoption is encrypted again after a decryption outside of the app")
    func decryptedOutside() throws {
        let file = try Fixture.file(version: 25, encryptedWith: TestKeys.raw())
        #expect(try Fixture.open(file.folder).report.outcome == .opened)
        _ = try Decryption(
            path: file.path, provider: TestKeys.provider(), formats: [CipherSettings()], options: ConversionOptions()
        ).run()
        #expect(try Fixture.open(file.folder).report.outcome == .encrypted)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("With encryption off, a plaintext database is created, and encrypted once encryption is on")
    func createdPlain() throws {
        let folder = try TemporaryFolder()
        let off = Fixture.configuration(.init(isEnabled: false, sinceVersion: 24))
        #expect(try Fixture.open(folder, off).report.outcome == .created)
        #expect(try LegacyFile(copying: folder.path("app.db")).startsAsPlaintext)
        #expect(try Fixture.open(folder).report.outcome == .encrypted)
    }

    @Test("An unexpected plaintext file is encrypted if the configuration allows it", arguments: [24, 25, 26])
    func unexpectedAllowed(version: Int) throws {
        let file = try Fixture.file(version: version)
        let allowing = Fixture.configuration(.init(sinceVersion: 24, unexpectedPlaintext: .encrypt))
        #expect(try Fixture.open(file.folder, allowing).report.outcome == .encrypted)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("An encrypted file with rows only in its log is opened as it is")
    func encrypted() throws {
        let file = try Fixture.file(version: 26, encryptedWith: TestKeys.raw())
        #expect(try Fixture.open(file.folder).report.outcome == .opened)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("A file in cipher format 3 is created and opened if the configuration specifies the format")
    func formatThree() throws {
        let settings = CipherSettings(compatibility: 3)
        let three = Fixture.configuration(.init(sinceVersion: 24, format: CipherSettings(compatibility: 3)))
        let file = try Fixture.file(version: 23)
        #expect(try Fixture.open(file.folder, three).report.outcome == .encrypted)
        #expect(try Fixture.open(file.folder, three).report.outcome == .opened)
        #expect(try Fixture.rows(file, key: TestKeys.raw(), settings: settings) == Fixture.allRows)
        guard Engine.current.defaultCompatibility > 3 else { return }
        let before = try file.digest()
        #expect(try storeError { try Fixture.open(file.folder) }?.code == .keyDoesNotFit)
        #expect(try file.digest() == before)
    }

    @Test("The version is found in every place where an app may record it", arguments: RecordedPlace.all, [23, 25, 27])
    func recorded(place: RecordedPlace, version: Int) throws {
        let file = try Fixture.file(version: 3, extra: place.script(version))
        try place.record(version, in: file.folder)
        let configuration = Fixture.configuration(recordedVersion: place.source)
        let before = try file.digest()
        switch version {
        case 23:
            #expect(try Fixture.open(file.folder, configuration).report.outcome == .encrypted)
            #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
            #expect(try Fixture.open(file.folder, configuration).report.outcome == .opened)
        case 25:
            #expect(try storeError { try Fixture.open(file.folder, configuration) }?.code == .unexpectedPlaintext)
            #expect(try file.digest() == before)
        default:
            #expect(try storeError { try Fixture.open(file.folder, configuration) }?.code == .downgrade)
            #expect(try file.digest() == before)
        }
    }
}
