package import CipherErrors
package import CipherKeyProviders
package import CipherSQLite

/// Finds the key and the cipher format that open an encrypted file. The order in which they are tried is always the
/// same:
///
/// 1. The provider's key in the first format, which is the target format.
/// 2. The previous key, if the provider has one, in every format. The previous key is requested only if the first key
///    does not open the file or is not available. A key is therefore never created before another one has opened the
///    file, and a new key store locks no user out while the file has the old key.
/// 3. The provider's key in the other formats. Each attempt with a passphrase is one key derivation.
package struct FileUnlocking {
    let paths: DatabasePaths
    let provider: any KeyProvider
    /// The cipher settings that the file may have.
    ///
    /// The first are the target settings.
    let formats: [CipherSettings]
    /// Whether to roll back the journal of a writer that crashed, once a key has opened the file and not before.
    ///
    /// If so, the caller holds the upgrade lock. Otherwise nothing is changed, and a file with such a journal is
    /// refused.
    let rollsBackJournal: Bool
    /// Whether to try the previous key of the provider.
    private let takesPreviousKey: Bool

    package init(
        _ paths: DatabasePaths, provider: any KeyProvider, formats: [CipherSettings], rollsBackJournal: Bool = false,
        takesPreviousKey: Bool = true
    ) {
        self.paths = paths
        self.provider = provider
        self.formats = formats
        self.rollsBackJournal = rollsBackJournal
        self.takesPreviousKey = takesPreviousKey
    }

    /// An encrypted file that a key has opened.
    package struct Unlocked: Sendable {
        package let fileKey: FileKey
        /// Whether the app keeps the file in WAL mode.
        ///
        /// An interrupted run may have changed the mode.
        let isWriteAheadLog: Bool
        /// The previous key, if it is the key that opened the file.
        let previousKey: CipherKey?

        package var hasPreviousKey: Bool { previousKey != nil }
    }

    /// Opens the file, and passes `body` a read-only connection.
    ///
    /// - Throws: ``StoreError`` with the code `keyDoesNotFit`, `saltMissing` if neither the file nor the key contains
    ///   the salt, or `needsRecovery` if a journal is not rolled back; any error thrown by the provider; any error
    ///   thrown by `body`, unchanged.
    package func run<Result>(
        _ inspector: Inspector, hasPlaintextHeader: Bool, _ body: (Connection, Unlocked) throws -> Result
    ) throws -> (file: Unlocked, result: Result) {
        func attempt(
            _ key: CipherKey, _ formats: [CipherSettings], isPrevious: Bool = false
        ) throws -> Attempt<Result> {
            try self.attempt(
                key, formats, isPrevious: isPrevious, inspector, hasPlaintextHeader: hasPlaintextHeader, body)
        }
        let found = try order(attempt)
        return (found.file, try found.result.get())
    }

    /// The result of `body` is kept separate: its failure must not be mistaken for a wrong key, because the key has
    /// already opened the file.
    private typealias Attempt<Result> = (file: Unlocked, result: Swift.Result<Result, any Error>)

    private func order<Found>(_ attempt: (CipherKey, [CipherSettings], Bool) throws -> Found) throws -> Found {
        var failure: StoreError
        var wanted: CipherKey?
        do {
            let key = try provider.checkedKey(for: .existing, database: paths.database)
            wanted = key
            return try attempt(key, Array(formats.prefix(1)), false)
        } catch let error as StoreError where error.saysThatKeyIsAnother || error.isOfKeyProvider {
            failure = error
        }
        if takesPreviousKey, let previous = try provider.checkedPreviousKey(database: paths.database),
            previous != wanted
        {
            do {
                return try attempt(previous, formats, true)
            } catch let error as StoreError where error.saysThatKeyIsAnother {
                if failure.saysThatKeyIsAnother { failure = error }
            }
        }
        guard let wanted, formats.count > 1 else { throw failure }
        return try attempt(wanted, Array(formats.dropFirst()), false)
    }

    private func attempt<Result>(
        _ key: CipherKey, _ formats: [CipherSettings], isPrevious: Bool, _ inspector: Inspector,
        hasPlaintextHeader: Bool, _ body: (Connection, Unlocked) throws -> Result
    ) throws -> Attempt<Result> {
        // Only a caller that will write needs to know how an interrupted run changed the journal mode.
        let interrupted = try rollsBackJournal ? AttemptRecord.read(paths) : nil
        for settings in formats {
            let found = try read(key, settings, inspector, hasPlaintextHeader: hasPlaintextHeader) {
                connection, fileKey in
                let isWriteAheadLog = try ReadOnlyAccess.journalMode(of: connection) == "wal"
                let file = Unlocked(
                    fileKey: fileKey, isWriteAheadLog: isWriteAheadLog || interrupted?.wasWriteAheadLog == true,
                    previousKey: isPrevious ? key : nil)
                return (file, Swift.Result { try body(connection, file) })
            }
            if let found { return found }
        }
        throw inspector.keyDoesNotFit()
    }

    private func read<Found>(
        _ key: CipherKey, _ settings: CipherSettings, _ inspector: Inspector, hasPlaintextHeader: Bool,
        _ body: (Connection, FileKey) throws -> Found
    ) throws -> Found? {
        func read() throws -> Found? {
            try inspector.readingEncrypted(
                key: key, settings: settings, hasPlaintextHeader: hasPlaintextHeader, body)
        }
        do {
            return try read()
        } catch let error as StoreError where error.code == .needsRecovery && rollsBackJournal {
            let fileKey = try inspector.fileKey(key, settings, hasPlaintextHeader: hasPlaintextHeader)
            do {
                try JournalRollback(paths: paths).run(fileKey, inspector: inspector)
            } catch let error as StoreError where error.code == .keyDoesNotFit {
                return nil
            }
            return try read()
        }
    }
}

extension StoreError {
    /// Whether the file is undamaged as far as is known, and may be opened by another key or format.
    fileprivate var saysThatKeyIsAnother: Bool { code == .keyDoesNotFit || code == .saltMissing }

    /// Whether the key provider failed, so that it is unknown whether the file has the provider's key.
    package var isOfKeyProvider: Bool {
        switch code {
        case .keyUnavailable, .keyStoreLocked, .keyStoreUnavailable, .keyMalformed, .keyFileInsecure: true
        default: false
        }
    }
}
