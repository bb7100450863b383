internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// Something that a copy easily loses, made with plain SQL.
struct Hazard: Sendable, CustomTestStringConvertible {
    let name: String
    let collations: [Collation]
    /// Whether VIRTUAL generated columns can be computed when the result is compared.
    let computed: Bool
    /// Whether the files are copied while the app has them open.
    let unclosed: Bool
    /// Whether rows violate their own constraints, or an index is damaged, which the report mentions.
    let warns: Bool
    let make: @Sendable (Connection) throws -> Void

    var testDescription: String { name }

    init(
        _ name: String, collations: [Collation] = [], computed: Bool = true, unclosed: Bool = false,
        warns: Bool = false, _ make: @escaping @Sendable (Connection) throws -> Void
    ) {
        self.name = name
        self.collations = collations
        self.computed = computed
        self.unclosed = unclosed
        self.warns = warns
        self.make = make
    }

    init(
        _ name: String, computed: Bool = true, unclosed: Bool = false, warns: Bool = false,
        _ script: String
    ) {
        self.init(name, computed: computed, unclosed: unclosed, warns: warns) { connection in
            connection.allowDoubleQuotedStrings()
            try connection.executeScript(text: script)
        }
    }

    /// Makes the database, encrypts it, and compares the result with the original.
    @discardableResult
    func run(settings: CipherSettings = CipherSettings()) throws -> LegacyFile {
        let file = try LegacyFile(unclosed: unclosed) { connection in
            for collation in collations { try connection.register(collation) }
            try make(connection)
        }
        let original = try file.originalDump(collations: collations, computed: computed)
        var options = ConversionOptions()
        options.collations = collations
        options.format = settings
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
        #expect(report.outcome == .encrypted)
        #expect(report.warnings.besidesLeases.isEmpty == !warns, "\(report.warnings)")
        #expect(try !file.startsAsPlaintext)
        let result = try file.dump(
            key: TestKeys.raw(), settings: settings, collations: collations, computed: computed)
        #expect(result == original, "\(result.differences(from: original))")
        #expect(report.rows == result.rows || !computed)
        try expectSameHealth(file, settings)
        if Engine.current.hasCipherIntegrityCheck {
            // Checks all pages, including free ones. Each returned row is a page that is not authentic.
            let forged = try file.read(key: TestKeys.raw(), settings: settings, collations: collations) {
                try $0.values(String.self, "PRAGMA cipher_integrity_check")
            }
            #expect(forged == [])
        }
        try expectAlone(file)
        try goOn(file, settings, original)
        return file
    }

    private func expectAlone(_ file: LegacyFile) throws {
        #expect(try file.folder.names.filter { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") } == ["app.db"])
    }

    /// Changes the key of a copy of the file, and decrypts it: the same rows must come back.
    private func goOn(_ encrypted: LegacyFile, _ settings: CipherSettings, _ original: DatabaseDump) throws {
        let file = try LegacyFile(copying: encrypted.path)
        var options = ConversionOptions()
        options.collations = collations
        let newKey: @Sendable () throws -> CipherKey = { try TestKeys.raw(8) }
        let rekeyed = try Rekeying(
            at: DatabasePaths(file.path), oldKey: TestKeys.provider(), newKey: TestKeys.provider(newKey),
            formats: [settings], newSettings: CipherSettings(), options: options
        ).run()
        #expect(rekeyed.outcome == .rekeyed)
        let dump = try file.dump(key: newKey(), collations: collations, computed: computed)
        #expect(dump == original, "\(dump.differences(from: original))")
        let decrypted = try Decryption(
            path: file.path, provider: TestKeys.provider(newKey), formats: [CipherSettings()], options: options
        ).run()
        #expect(decrypted.outcome == .decrypted)
        #expect(try file.startsAsPlaintext)
        let back = try file.dump(key: nil, collations: collations, computed: computed)
        #expect(back == original, "\(back.differences(from: original))")
        try expectAlone(file)
    }

    /// SQLite's own check must find the same problems as before, which are none for most hazards.
    private func expectSameHealth(_ file: LegacyFile, _ settings: CipherSettings) throws {
        func complaints(_ connection: Connection) throws -> Int {
            do {
                return try connection.values(String.self, "PRAGMA integrity_check").filter { $0 != "ok" }.count
            } catch let error as DatabaseError where error.code == DatabaseError.generic {
                // A function or module of the app is missing here.
                return -1
            }
        }
        let before = try file.readOriginal(collations: collations, complaints)
        let after = try file.read(key: TestKeys.raw(), settings: settings, collations: collations, complaints)
        // A copy has no lost pages, so it may have fewer problems.
        #expect(after == before || (0..<max(before, 0)).contains(after))
    }
}
