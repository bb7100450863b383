internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles
import CipherTestSupport
import Testing

extension LegacyFile {
    /// Encrypts the database as a store does while it is open.
    func encryptInUse(_ onDamage: OnDamage = .rebuildIndexes) throws -> EncryptionReport {
        let app = try Connection(path: path, mode: .readWrite, busyTimeout: .milliseconds(20))
        defer { app.close() }
        _ = try app.value(String.self, "PRAGMA journal_mode = WAL")
        var options = ConversionOptions()
        options.onDamage = onDamage
        let encryption = try OpenEncryption(DatabasePaths(path), provider: TestKeys.provider(), options: options)
        defer { encryption.end() }
        let cancellation = UpgradeCancellation()
        try encryption.prepare(cancellation, resting: {}) { [path] in
            try LockedWriter(path, nil, extensions: SQLExtensions(), busyTimeout: .seconds(5))
        }
        app.close()
        var key: FileKey?
        return try encryption.finish(&key, cancellation)
    }

    /// Expects that an encryption of the database in use is refused with `corrupt`, and that the database stays as it
    /// is in WAL mode.
    ///
    /// - Returns: The description of the damage.
    func refusalInUse(_ onDamage: OnDamage = .rebuildIndexes) throws -> String {
        _ = try read(key: nil) { try $0.value(String.self, "PRAGMA journal_mode = WAL") }
        let before = try dump(key: nil)
        let error = try #require(try storeError { try encryptInUse(onDamage) })
        #expect(error.code == .corrupt)
        #expect(try startsAsPlaintext)
        #expect(try folder.names == ["app.db"])
        #expect(try dump(key: nil) == before)
        return error.detail
    }
}

extension EncryptionReport {
    /// The warnings, except for the one that names the kept original.
    var damageWarnings: [String] { warnings.besidesLeases.filter { !$0.contains("is kept as") } }
}
