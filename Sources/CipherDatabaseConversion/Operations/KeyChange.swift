package import CipherErrors
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSystemFiles

/// Opens an encrypted file in whichever of its keys and formats fits, and gives it the wanted ones.
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

    /// An encrypted file that one of the keys has opened.
    package struct Found<Facts> {
        package let file: FileUnlocking.Unlocked<Facts>
        /// The previous key, where that was it.
        let previousKey: CipherKey?

        package var hasPreviousKey: Bool { previousKey != nil }
    }

    private var wanted: CipherSettings { formats[0] }
    private var unlocking: FileUnlocking { FileUnlocking(paths: paths, options: options) }

    // MARK: Opening

    /// Shows that one of the keys fits.
    ///
    /// The previous key is asked for only where the wanted one does not open the file, or cannot be had: no key is ever made
    /// before another one has opened the file, and nobody is locked out by a new key store while the file has the old key.
    ///
    /// - Throws: ``StoreError`` with `keyDoesNotFit`, and what the provider throws.
    package func unlock<Facts>(
        _ inspector: Inspector, hasPlaintextHeader: Bool, _ body: (Connection) throws -> Facts
    ) throws -> Found<Facts> {
        func attempt(_ key: CipherKey, _ formats: [CipherSettings]) throws -> FileUnlocking.Unlocked<Facts> {
            try unlocking.run(key, formats: formats, inspector, hasPlaintextHeader: hasPlaintextHeader, body)
        }
        var failure: StoreError
        var wantedKey: CipherKey?
        do {
            let key = try provider.checkedKey(for: .existing, database: paths.database)
            wantedKey = key
            return Found(file: try attempt(key, [wanted]), previousKey: nil)
        } catch let error as StoreError where error.saysThatKeyIsAnother || error.isOfKeyProvider {
            failure = error
        }
        if let previous = try provider.checkedPreviousKey(database: paths.database), previous != wantedKey {
            do {
                return Found(file: try attempt(previous, formats), previousKey: previous)
            } catch let error as StoreError where error.saysThatKeyIsAnother {
                if failure.saysThatKeyIsAnother { failure = error }
            }
        }
        guard let wantedKey, formats.count > 1 else { throw failure }
        return Found(file: try attempt(wantedKey, Array(formats.dropFirst())), previousKey: nil)
    }

    // MARK: Changing

    /// Whether the file has another key or format than the wanted ones.
    func isNeeded<Facts>(for found: Found<Facts>) -> Bool {
        found.hasPreviousKey || found.file.fileKey.settings != wanted
    }

    /// Gives a file that was opened with the previous key, or in another format, the wanted ones.
    ///
    /// - Parameter finishing: Changes the proven copy before it takes the file's place.
    package func convert<Facts>(
        _ found: Found<Facts>, _ inspector: Inspector, finishing: ((Connection) throws -> Void)? = nil
    ) throws -> (report: EncryptionReport, fileKey: FileKey) {
        let key = try provider.checkedKey(for: .createOrExisting, database: paths.database)
        guard key != found.previousKey else { throw StoreError.keyUnchanged(paths) }
        try key.checkFits(wanted, paths)
        let conversion = Conversion(
            paths: paths, options: options, sourceKey: found.file.fileKey, targetSettings: wanted)
        let (report, fileKey) = try conversion.run(
            .rekeyed, inspector, isWriteAheadLog: found.file.isWriteAheadLog,
            targetKeys: {
                let again = try provider.keyAskedAgain(key, database: paths.database)
                return try UpgradeKeys(key, again: again, settings: wanted)
            }, finishing: finishing)
        guard let fileKey else { throw inspector.keyDoesNotFit() }
        return (report, fileKey)
    }

    /// Ends what an earlier run left beside a file that stays as it is.
    ///
    /// Returns what is to be told.
    @discardableResult
    package func settle<Facts>(_ found: Found<Facts>) throws -> [String] {
        try unlocking.settle(found.file.fileKey)
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
                return "the previous key is kept, for it is the new one: give the rotation another new key, or end it"
            }
            guard try FileSystem.syncFolder(of: paths.database) else { return nil }
            try provider.previousKeyIsObsolete(database: paths.database)
            return nil
        } catch let error as StoreError {
            return "the previous key is still kept, the next opening tells the provider again: \(error)"
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
    /// Whether the file is sound as far as is known, and another key or format may open it.
    fileprivate var saysThatKeyIsAnother: Bool { code == .keyDoesNotFit || code == .saltMissing }

    /// Whether it is the key provider that failed, so that it is not known whether the file has its key.
    package var isOfKeyProvider: Bool {
        switch code {
        case .keyUnavailable, .keyStoreLocked, .keyStoreUnavailable, .keyMalformed, .keyFileInsecure: true
        default: false
        }
    }

    fileprivate static func keyUnchanged(_ paths: DatabasePaths) -> StoreError {
        StoreError(
            .keyUnchanged, path: paths.database, "the new key is the old one",
            advice: "give another new key, or none where the format alone is to change", changed: .nothing)
    }
}
