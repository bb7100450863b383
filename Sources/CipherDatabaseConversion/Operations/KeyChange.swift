internal import CipherErrors
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSystemFiles

/// Changes an encrypted file, which one of its keys has opened, to the target key and format.
///
/// The provider holds both keys until the change is durable. A crash can therefore never leave a file that neither key
/// opens.
package struct KeyChange {
    package let paths: DatabasePaths
    package let provider: any KeyProvider
    /// The cipher settings that the file may have.
    ///
    /// The first are the target settings.
    package let formats: [CipherSettings]
    package let options: ConversionOptions

    package init(
        paths: DatabasePaths, provider: any KeyProvider, formats: [CipherSettings], options: ConversionOptions
    ) {
        self.paths = paths
        self.provider = provider
        self.formats = formats
        self.options = options
    }

    private var wanted: CipherSettings { formats[0] }

    /// Returns whether the file's key or format differs from the target key or format.
    func isNeeded(for file: FileUnlocking.Unlocked) -> Bool {
        file.hasPreviousKey || file.fileKey.settings != wanted
    }

    /// Converts a file that was opened with the previous key, or in another format, to the target key and format.
    ///
    /// - Parameter finishing: Changes the proven copy before it replaces the file.
    package func convert(
        _ file: FileUnlocking.Unlocked, _ inspector: Inspector, finishing: ((Connection) throws -> Void)? = nil
    ) throws -> (report: EncryptionReport, fileKey: FileKey) {
        let key = try provider.checkedKey(for: .createOrExisting, database: paths.database)
        guard key != file.previousKey else { throw StoreError.keyUnchanged(paths) }
        try key.checkSalt(for: wanted, path: paths.database)
        var conversion = Conversion(
            paths: paths, options: options, sourceKey: file.fileKey, targetSettings: wanted)
        conversion.keyProvider = provider
        let (report, fileKey) = try conversion.run(
            .rekeyed, inspector, isWriteAheadLog: file.isWriteAheadLog,
            targetKeys: {
                let again = try provider.keyAskedAgain(key, database: paths.database)
                return try UpgradeKeys(key, again: again, settings: wanted)
            }, finishing: finishing)
        guard let fileKey else { throw inspector.keyDoesNotFit() }
        return (report, fileKey)
    }

    /// Refuses a key that ``convert(_:_:finishing:)`` would refuse, and creates none.
    ///
    /// - Returns: Whether there is a key.
    package func hasNewKey(for file: FileUnlocking.Unlocked) throws -> Bool {
        guard let key = try provider.checkedPlannedKey(database: paths.database) else { return false }
        guard key != file.previousKey else { throw StoreError.keyUnchanged(paths) }
        try key.checkSalt(for: wanted, path: paths.database)
        return true
    }

    /// Notifies the provider, for a file that has the target key, that the previous key is no longer needed.
    ///
    /// The provider is notified only once the name of the new file is on disk: before that, a power loss may bring back
    /// the old file, which needs the old key. The provider is not notified if both keys are equal, because it would
    /// then delete the only key.
    ///
    /// Nor is the provider notified while an encrypted damaged original is kept, which only the previous key may
    /// open.
    ///
    /// - Returns: A warning if this failed. In that case nothing is lost: the next opening notifies the provider again.
    package func retirePreviousKey() -> String? {
        do {
            guard let previous = try provider.checkedPreviousKey(database: paths.database) else { return nil }
            guard try provider.checkedKey(for: .existing, database: paths.database) != previous else {
                return
                    "the previous key was not discarded, because it equals the new key: use a different new key in the "
                    + "rotation, or end the rotation"
            }
            if let kept = try paths.encryptedDamagedOriginal() {
                return
                    "the previous key was not discarded, because \(kept) may be encrypted with it: once you "
                    + "know that nothing is missing from the database, delete that file, and open the database again"
            }
            guard try FileSystem.syncFolder(of: paths.database) else { return nil }
            try provider.previousKeyIsObsolete(database: paths.database)
            return nil
        } catch let error as StoreError {
            return
                "the previous key was not discarded (CipherStore will notify the key provider again when the database "
                + "is next opened): \(error)"
        } catch {
            return "the previous key was not discarded: the key provider threw an error of type \(type(of: error))"
        }
    }

    /// Refuses a change from a key to the same one.
    ///
    /// - Throws: ``StoreError`` with the code `keyUnchanged`.
    func checkKeysDiffer() throws {
        let previous: CipherKey?
        let key: CipherKey
        do {
            previous = try provider.checkedPreviousKey(database: paths.database)
            key = try provider.checkedKey(for: .existing, database: paths.database)
        } catch is StoreError {
            // The next request to the provider reports the error.
            return
        }
        guard previous != key else { throw StoreError.keyUnchanged(paths) }
    }
}

extension StoreError {
    /// Creates the error for a change from a key to the same one.
    ///
    /// - Parameter isKeyRequired: Whether the operation can change nothing but the key.
    static func keyUnchanged(_ paths: DatabasePaths, isKeyRequired: Bool = false) -> StoreError {
        StoreError(
            .keyUnchanged, path: paths.database, "the new key equals the old one",
            advice: "pass a different new key"
                + (isKeyRequired ? "" : ", or pass no new key to change only the format"), changed: .nothing)
    }
}
