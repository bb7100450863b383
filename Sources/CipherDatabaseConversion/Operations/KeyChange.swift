internal import CipherErrors
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSystemFiles

/// Gives an encrypted file, which one of its keys has opened, the wanted key and format.
///
/// The provider holds both keys until the change is durable, so there is no moment at which a crash could leave a file that
/// neither opens.
package struct KeyChange {
    package let paths: DatabasePaths
    package let provider: any KeyProvider
    /// The cipher settings that the file may have; the first are the wanted ones.
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

    /// Whether the file has another key or format than the wanted ones.
    func isNeeded(for file: FileUnlocking.Unlocked) -> Bool {
        file.hasPreviousKey || file.fileKey.settings != wanted
    }

    /// Gives a file that was opened with the previous key, or in another format, the wanted ones.
    ///
    /// - Parameter finishing: Changes the proven copy before it takes the file's place.
    package func convert(
        _ file: FileUnlocking.Unlocked, _ inspector: Inspector, finishing: ((Connection) throws -> Void)? = nil
    ) throws -> (report: EncryptionReport, fileKey: FileKey) {
        let key = try provider.checkedKey(for: .createOrExisting, database: paths.database)
        guard key != file.previousKey else { throw StoreError.keyUnchanged(paths) }
        try key.checkSalt(for: wanted, path: paths.database)
        let conversion = Conversion(
            paths: paths, options: options, sourceKey: file.fileKey, targetSettings: wanted)
        let (report, fileKey) = try conversion.run(
            .rekeyed, inspector, isWriteAheadLog: file.isWriteAheadLog,
            targetKeys: {
                let again = try provider.keyAskedAgain(key, database: paths.database)
                return try UpgradeKeys(key, again: again, settings: wanted)
            }, finishing: finishing)
        guard let fileKey else { throw inspector.keyDoesNotFit() }
        return (report, fileKey)
    }

    /// Refuses a key that ``convert(_:_:finishing:)`` would refuse, and makes none.
    ///
    /// - Returns: Whether there is a key.
    package func hasNewKey(for file: FileUnlocking.Unlocked) throws -> Bool {
        guard let key = try provider.checkedPlannedKey(database: paths.database) else { return false }
        guard key != file.previousKey else { throw StoreError.keyUnchanged(paths) }
        try key.checkSalt(for: wanted, path: paths.database)
        return true
    }

    /// Tells the provider, of a file that has the wanted key, that the previous one has served its time.
    ///
    /// Only once the name of the new file is on the disk: a power loss may bring the old file back before, and it needs the
    /// old key. Not where both keys are equal: the provider would drop the only one.
    ///
    /// - Returns: What went wrong, which changes nothing: the next opening tells it again.
    package func retirePreviousKey() -> String? {
        do {
            guard let previous = try provider.checkedPreviousKey(database: paths.database) else { return nil }
            guard try provider.checkedKey(for: .existing, database: paths.database) != previous else {
                return
                    "the previous key is kept, because it equals the new one: give the rotation another new key, or end it"
            }
            guard try FileSystem.syncFolder(of: paths.database) else { return nil }
            try provider.previousKeyIsObsolete(database: paths.database)
            return nil
        } catch let error as StoreError {
            return "the previous key is still kept; the next opening tells the provider again: \(error)"
        } catch {
            return "the previous key is still kept: the provider failed with \(type(of: error))"
        }
    }

    /// Refuses a change from a key to the same one.
    ///
    /// - Throws: ``StoreError`` with `keyUnchanged`.
    func checkKeysDiffer() throws {
        let previous: CipherKey?
        let key: CipherKey
        do {
            previous = try provider.checkedPreviousKey(database: paths.database)
            key = try provider.checkedKey(for: .existing, database: paths.database)
        } catch is StoreError {
            // What is asked for next says what is wrong.
            return
        }
        guard previous != key else { throw StoreError.keyUnchanged(paths) }
    }
}

extension StoreError {
    static func keyUnchanged(_ paths: DatabasePaths) -> StoreError {
        StoreError(
            .keyUnchanged, path: paths.database, "the new key equals the old one",
            advice: "give another new key, or none if only the format is to change", changed: .nothing)
    }
}
