package import CipherSQLite

/// Gives an encrypted database another key, another salt or another cipher format.
///
/// The file is built anew and proven, as in an encryption upgrade: a crash leaves it under the one key or the other, and
/// running again with both keys ends what was begun.
package struct Rekeying {
    private let paths: DatabasePaths
    private let oldKey: any KeyProvider
    private let newKey: any KeyProvider
    private let formats: [CipherSettings]
    private let newSettings: CipherSettings
    private var options: EncryptionUpgrade.Options

    /// - Parameters:
    ///   - oldKey: The key of the file as it is.
    ///   - newKey: The key of the file as it is to be; asked with `createOrExisting` first, and again with `existing`.
    ///   - formats: The cipher settings that the file may have, in the order in which they are tried.
    ///   - newSettings: Those that it is to have.
    package init(
        path: String, oldKey: any KeyProvider, newKey: any KeyProvider, formats: [CipherSettings],
        newSettings: CipherSettings, options: EncryptionUpgrade.Options
    ) throws {
        paths = try DatabasePaths(path)
        self.oldKey = oldKey
        self.newKey = newKey
        self.formats = formats
        self.newSettings = newSettings
        self.options = options
        self.options.keepBackup = false
    }

    /// Changes the key, or finds it changed.
    ///
    /// - Throws: ``StoreError``, with `keyDoesNotFit` where neither key opens the file. Until the swap nothing has changed.
    package func run() throws -> EncryptionReport {
        try options.withLockedFile(paths) { inspector, content in
            guard case .opaque(let hasPlaintextHeader) = content else {
                throw StoreError(
                    .unexpectedPlaintext, path: paths.database, "the file is not encrypted, so it has no key to change",
                    advice: "encrypt it; nothing was changed")
            }
            return try rekey(inspector, hasPlaintextHeader: hasPlaintextHeader)
        }
    }

    private func rekey(_ inspector: Inspector, hasPlaintextHeader: Bool) throws -> EncryptionReport {
        let old = try oldKey.checkedKey(for: .existing, database: paths.database)
        let (fileKey, isWriteAheadLog): (FileKey, Bool)
        do {
            (fileKey, isWriteAheadLog) = try FileUnlocking(paths: paths, options: options)
                .run(old, formats: formats, inspector, hasPlaintextHeader: hasPlaintextHeader)
        } catch let error as StoreError where error.code == .keyDoesNotFit || error.code == .saltMissing {
            guard let done = try confirmChanged(inspector, hasPlaintextHeader: hasPlaintextHeader) else { throw error }
            return done
        }
        let new = try newKey.checkedKey(for: .createOrExisting, database: paths.database)
        try new.checkFits(newSettings, paths)
        guard new != old || newSettings != fileKey.settings else {
            return try EncryptionReport(unchanged: .alreadyRekeyed, paths)
        }
        return try Conversion(paths: paths, options: options, sourceKey: fileKey, targetSettings: newSettings)
            .run(.rekeyed, inspector, isWriteAheadLog: isWriteAheadLog) {
                let again = try newKey.keyAskedAgain(new, database: paths.database)
                return try UpgradeKeys(new, again: again, settings: newSettings)
            }.report
    }

    /// Whether an earlier run came to its commit and died: the new key opens the file then.
    private func confirmChanged(_ inspector: Inspector, hasPlaintextHeader: Bool) throws -> EncryptionReport? {
        let new = try newKey.checkedKey(for: .existing, database: paths.database)
        var options = options
        options.settings = newSettings
        do {
            _ = try FileUnlocking(paths: paths, options: options)
                .run(new, inspector, hasPlaintextHeader: hasPlaintextHeader) { _ in }
        } catch let error as StoreError where error.code == .keyDoesNotFit || error.code == .saltMissing {
            return nil
        }
        return try EncryptionReport(unchanged: .alreadyRekeyed, paths)
    }
}
