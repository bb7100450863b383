package import CipherErrors
package import CipherKeyProviders
package import CipherSQLite

/// Finds the key and the cipher format that open an encrypted file: the one order in which they are tried.
///
/// 1. The provider's key in the first format, which is the wanted one.
/// 2. The previous key, where the provider has one, in every format. It is asked for only where the first key does not open
///    the file, or cannot be had: no key is ever made before another one has opened the file, and no one is locked out
///    by a new key store while the file has the old key.
/// 3. The provider's key in the other formats. Each try of a passphrase is one key derivation.
package struct FileUnlocking {
    let paths: DatabasePaths
    let provider: any KeyProvider
    /// The cipher settings that the file may have; the first are the wanted ones.
    let formats: [CipherSettings]
    /// Whether the journal of a writer that crashed is rolled back once a key has fitted, and not before.
    ///
    /// The upgrade lock is held then. Otherwise nothing is changed, and such a file is refused.
    let rollsBackJournal: Bool
    /// Whether the previous key of the provider counts.
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
        /// Whether the app keeps the file in WAL mode; what died may have taken it out of it.
        let isWriteAheadLog: Bool
        /// The previous key, where that was it.
        let previousKey: CipherKey?

        package var hasPreviousKey: Bool { previousKey != nil }
    }

    /// Opens the file, and lends a connection that only reads.
    ///
    /// - Throws: ``StoreError`` with `keyDoesNotFit`, with `saltMissing` if the key lacks the salt that the file does
    ///   not hold, with `needsRecovery` if a journal is not rolled back; what the provider throws; what `body` throws,
    ///   as it is.
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

    /// A failure of the body must not be taken for a key that does not fit: the key has fitted by then.
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
        // Only who goes on to write needs to know what a run that died did to the journal mode.
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
    /// Whether the file is sound as far as is known, and another key or format may open it.
    fileprivate var saysThatKeyIsAnother: Bool { code == .keyDoesNotFit || code == .saltMissing }

    /// Whether it is the key provider that failed, so that it is not known whether the file has its key.
    package var isOfKeyProvider: Bool {
        switch code {
        case .keyUnavailable, .keyStoreLocked, .keyStoreUnavailable, .keyMalformed, .keyFileInsecure: true
        default: false
        }
    }
}
