internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Recoveries of files with any combination of cipher settings, healthy and damaged.
struct FormatRecoveryTests {
    /// A combination of cipher settings.
    struct Seal: CustomTestStringConvertible, Sendable {
        var settings: CipherSettings
        var hasHMAC = true
        var isBigEndian = false
        var mask: UInt8 = 0x3a
        var isPassphrase = false

        var key: String {
            if isPassphrase { return PlantedFile.passphrase }
            let salt = settings.plaintextHeaderSize > 0 ? "00112233445566778899aabbccddeeff" : ""
            return "x'\(PlantedFile.digits)\(salt)'"
        }

        var cipherKey: CipherKey { get throws { try CipherKey(text: SecretBytes(Array(key.utf8))) } }

        var testDescription: String { "\(settings), HMAC \(hasHMAC), \(isBigEndian), mask \(mask), \(isPassphrase)" }

        /// Whether the settings of an app can describe the file.
        var isUsual: Bool { hasHMAC && !isBigEndian && mask == 0x3a }

        func file() throws -> PlantedFile {
            var pragmas = hasHMAC ? [] : ["cipher_use_hmac = OFF"]
            if isBigEndian { pragmas.append("cipher_hmac_pgno = be") }
            let file = try PlantedFile(Array(key.utf8), settings, pragmas: pragmas)
            // SQLCipher sets the mask for the whole process, so the HMACs are computed here.
            if mask != 0x3a { try file.authenticateAgain(settings, mask: mask, bigEndian: isBigEndian) }
            return file
        }
    }

    private static let pageSizes = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536]

    private static let settings: [CipherSettings] = (2...Engine.current.defaultCompatibility).flatMap { format in
        pageSizes.flatMap { size in
            CipherSettings.Digest.allCases.flatMap { hmac in
                [0, 32].map {
                    CipherSettings(
                        compatibility: format, pageSize: size, hmacAlgorithm: hmac, plaintextHeaderSize: $0)
                }
            }
        }
    }.filter { $0.fault() == nil }

    static let seals: [Seal] = settings.flatMap { settings -> [Seal] in
        let all = [
            Seal(settings: settings), Seal(settings: settings, hasHMAC: false),
            Seal(settings: settings, isBigEndian: true), Seal(settings: settings, mask: 0),
            Seal(settings: settings, isBigEndian: true, mask: 0),
        ]
        guard settings.plaintextHeaderSize == 0 else { return Array(all.prefix(3)) }
        // A derivation takes long, and does not depend on the page size.
        guard settings.pageSize == 2048 else { return all }
        return all
            + all.filter { $0.mask == 0x3a }.map {
                var seal = $0
                seal.isPassphrase = true
                return seal
            }
    }

    private static func recover(_ file: PlantedFile, _ seal: Seal) throws -> RecoveryReport {
        let key = try seal.cipherKey
        return try DatabaseRecovery(
            of: DatabasePaths(file.path), provider: TestKeys.provider { key }, formats: CipherSettings.authenticated(),
            to: file.folder.path("new.db"), targetProvider: nil, template: nil, options: ConversionOptions()
        ).run()
    }

    private static func inPlace(_ file: PlantedFile, _ seal: Seal) throws -> InPlaceRecovery {
        let key = try seal.cipherKey
        return InPlaceRecovery(
            of: try DatabasePaths(file.path), provider: TestKeys.provider { key },
            formats: CipherSettings.authenticated(), options: ConversionOptions())
    }

    @Test("A healthy file is recovered completely or refused, and is never replaced", arguments: seals)
    func healthy(seal: Seal) throws {
        let file = try seal.file()
        let before = try FolderDigest(file.folder.url)

        // In place.
        do {
            #expect(try Self.inPlace(file, seal).runLocked().wasSound)
            #expect(seal.isUsual)
        } catch let error as StoreError {
            #expect(error.code == .keyDoesNotFit && !seal.isUsual, "\(error)")
        }
        #expect(try FolderDigest(file.folder.url) == before)

        // A store, whose formats do not describe the file.
        let key = try seal.cipherKey
        var encryption = Configuration.Encryption(formerFormats: CipherSettings.everyFormat, onDamage: .recover)
        encryption.formerFormats.removeAll { $0 == seal.settings }
        let configuration = Configuration(databaseName: "app.db", version: 1, encryption: encryption)
        var usual = CipherSettings(compatibility: seal.settings.compatibility)
        // The header itself shows that it is readable.
        usual.plaintextHeaderSize = seal.settings.plaintextHeaderSize
        if seal.settings != usual || !seal.isUsual {
            let error = try storeError {
                try EncryptedStore.openBlocking(
                    configuration, directory: file.folder.url, keyProvider: TestKeys.provider { key }
                ).closeBlocking()
            }
            // Format 1 with other defaults describes some of the files without HMACs.
            if error == nil { #expect(!seal.hasHMAC) } else { #expect(try FolderDigest(file.folder.url) == before) }
        }

        // Into a new file.
        let again = try seal.file()
        let diagnosis = try again.diagnose(seal.key)
        do {
            let report = try Self.recover(again, seal)
            #expect(report.complete && report.tables.map(\.rows) == [500], "\(report)")
        } catch let error as StoreError {
            #expect(error.code == .keyDoesNotFit && !seal.hasHMAC, "\(error), but the diagnosis is \(diagnosis.causes)")
        }
    }

    @Test("A file with a damaged page keeps its other rows, or is refused", arguments: seals)
    func damaged(seal: Seal) throws {
        let file = try seal.file()
        let size = seal.settings.pageSize
        try file.change { data in
            let page = data.count / size / 2 + 1
            for offset in ((page - 1) * size + 200)..<((page - 1) * size + 300) { data[offset] ^= 0x5a }
        }
        let before = try FolderDigest(file.folder.url)
        do {
            let report = try Self.recover(file, seal)
            let pages = try Data(contentsOf: URL(filePath: file.path)).count / size
            // The damaged page may be one of the index, which is rebuilt.
            #expect(report.complete ? report.rows == 500 : pages < 4 || report.rows > 100, "\(report)")
            #expect(seal.hasHMAC)
        } catch let error as StoreError {
            #expect(error.code == .keyDoesNotFit && !seal.hasHMAC, "\(error)")
            #expect(try FolderDigest(file.folder.url) == before)
        }
        guard !seal.isUsual else { return }
        try? FileManager.default.removeItem(atPath: file.folder.path("new.db"))
        #expect(try storeError { _ = try Self.inPlace(file, seal).runLocked() }?.code == .keyDoesNotFit)
        #expect(try FolderDigest(file.folder.url) == before)
    }

    @Test("A damaged database keeps its cipher format when it is recovered", arguments: seals.filter(\.isUsual))
    func keepsFormat(seal: Seal) throws {
        guard seal.settings.canBeWritten else { return }
        let file = try seal.file()
        let size = seal.settings.pageSize
        try file.change { data in
            let page = data.count / size
            for offset in ((page - 1) * size)..<(page * size) { data[offset] ^= 0x5a }
        }
        var recovery = try Self.inPlace(file, seal)
        recovery.keepsFormat = true
        #expect(try !recovery.runLocked().wasSound)
        let connection = try Connection(
            path: file.path, mode: .readOnly, key: seal.cipherKey, settings: seal.settings)
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM note") ?? 0 > 0)
    }

    // MARK: Format 1

    /// A file in format 1, as someone can forge who knows some of the content of the real file.
    private static func forged() throws -> PlantedFile {
        try PlantedFile("x'\(PlantedFile.digits)'", CipherSettings(compatibility: 1))
    }

    @Test("A file without HMACs is used only if its format is named, and is then reported as not authenticated")
    func forgery() throws {
        let file = try Self.forged()
        let paths = try DatabasePaths(file.path)
        let provider = TestKeys.provider { try CipherKey(text: SecretBytes(Array("x'\(PlantedFile.digits)'".utf8))) }
        let before = try FolderDigest(file.folder.url)
        let usual = CipherSettings.authenticated()
        let options = ConversionOptions()
        func rekeying(_ formats: [CipherSettings]) throws -> EncryptionReport {
            try Rekeying(
                at: paths, oldKey: provider, newKey: TestKeys.provider(), formats: formats,
                newSettings: CipherSettings(), options: options
            ).run()
        }
        func backup(_ formats: [CipherSettings]) throws -> EncryptionReport {
            try FileBackup(
                of: paths, provider: provider, formats: formats, to: file.folder.path("copy.db"),
                backupProvider: TestKeys.provider(), options: options
            ).run()
        }
        for attempt in [rekeying, backup] {
            #expect(try storeError { _ = try attempt(usual) }?.code == .keyDoesNotFit)
        }
        #expect(
            try storeError { _ = try Verification.run(at: paths, provider: provider, formats: usual) }?.code
                == .keyDoesNotFit)
        let refusal = try storeError { _ = try Self.recover(file, Seal(settings: CipherSettings())) }
        #expect(refusal?.code == .keyDoesNotFit)
        #expect(refusal?.advice.contains("--old-cipher-compatibility 1,") == true, "\(String(describing: refusal))")
        #expect(try FolderDigest(file.folder.url) == before)

        let named = [CipherSettings(compatibility: 1)]
        let verified = try Verification.run(at: paths, provider: provider, formats: named)
        #expect(verified.authentication == PageAuthentication.none)
        let copy = try backup(named)
        #expect(copy.authentication == PageAuthentication.none && copy.warnings.besidesLeases.count == 1)
        let report = try rekeying(named)
        #expect(
            report.authentication == PageAuthentication.none && report.warnings.besidesLeases.count == 1,
            "\(report.warnings)")
    }

    @Test("A store that accepts format 1 warns that such a file is not authenticated")
    func store() throws {
        let file = try Self.forged()
        let configuration = Configuration(
            databaseName: "app.db", version: 1,
            encryption: .init(formerFormats: [CipherSettings(compatibility: 1)]))
        let provider = TestKeys.provider { try CipherKey(text: SecretBytes(Array("x'\(PlantedFile.digits)'".utf8))) }
        let store = try EncryptedStore.openBlocking(
            configuration, directory: file.folder.url, keyProvider: provider)
        #expect(store.report.warnings.contains { $0.contains("not authenticated") }, "\(store.report.warnings)")
        try store.closeBlocking()
        let reader = try EncryptedStore.openReadOnlyBlocking(
            configuration, directory: file.folder.url, keyProvider: provider)
        defer { try? reader.closeBlocking() }
        #expect(reader.report.warnings.contains { $0.contains("not authenticated") }, "\(reader.report.warnings)")
    }

    @Test("A plan notes that a file in format 1 is not authenticated, and notes nothing for format 2")
    func plan() throws {
        for format in [1, 2] {
            let settings = CipherSettings(compatibility: format)
            let seal = Seal(settings: settings)
            let file = try seal.file()
            let key = try seal.cipherKey
            let configuration = Configuration(
                databaseName: "app.db", version: 1, encryption: .init(formerFormats: [settings]))
            let plan = try StoreOpening(
                configuration: configuration, directory: file.folder.path(""), provider: TestKeys.provider { key }
            ).plan()
            #expect(plan.step == .open)
            #expect(plan.schema.notes == [settings.authenticationWarning].compactMap(\.self))
            #expect((settings.authenticationWarning == nil) == (format > 1))
        }
    }

    @Test("A healthy file in format 1 is not replaced, even if its format is named")
    func soundFormat1() throws {
        let file = try Self.forged()
        let before = try FolderDigest(file.folder.url)
        let seal = Seal(settings: CipherSettings(compatibility: 1))
        var recovery = try Self.inPlace(file, seal)
        #expect(try storeError { _ = try recovery.runLocked() }?.code == .keyDoesNotFit)
        let key = try seal.cipherKey
        recovery = InPlaceRecovery(
            of: try DatabasePaths(file.path), provider: TestKeys.provider { key }, formats: [seal.settings],
            options: ConversionOptions())
        let report = try recovery.runLocked()
        #expect(report.wasSound && report.notes.contains { $0.contains("not authenticated") }, "\(report.notes)")
        #expect(try FolderDigest(file.folder.url) == before)
    }

    // MARK: Plaintext pages in an encrypted file

    @Test("One plaintext page does not make an encrypted file plaintext")
    func plaintextPage() throws {
        let seal = Seal(settings: CipherSettings())
        let file = try seal.file()
        let plain = try PlantedFile(nil)
        let other = try Data(contentsOf: URL(filePath: plain.path))
        let size = seal.settings.pageSize
        var middle = 0
        try file.change { data in
            middle = data.count / size / 2 + 1
            data.replaceSubrange((middle - 1) * size..<middle * size, with: other[size..<2 * size])
        }
        #expect(try file.diagnose(seal.key).kinds == [.damagedPages])
        #expect(try file.diagnose("x'\(String(repeating: "ab", count: 32))'").kinds == [.undetermined])
        let report = try Self.recover(file, seal)
        #expect(report.rows > 400, "\(report)")
        var wrong = seal
        wrong.isPassphrase = true
        try FileManager.default.removeItem(atPath: file.folder.path("new.db"))
        #expect(try storeError { _ = try Self.recover(file, wrong) }?.code == .keyDoesNotFit)
    }
}
