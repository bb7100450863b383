internal import CipherErrors
internal import CipherSQLite

/// Shows that a key opens an encrypted file, for whoever goes on with it.
package struct FileUnlocking {
    let paths: DatabasePaths
    let options: ConversionOptions

    /// An encrypted file that a key has opened.
    package struct Unlocked<Facts> {
        package let fileKey: FileKey
        /// Whether the app keeps the file in WAL mode; what died may have taken it out of it.
        let isWriteAheadLog: Bool
        /// What the caller read from the file.
        package let facts: Facts
    }

    /// Tries a key in several formats, in order; each try of a passphrase is one key derivation.
    ///
    /// The upgrade lock is held. A journal of a crashed writer is rolled back once the key has fitted, and not before.
    ///
    /// - Parameter body: Reads facts from the file, before anything else is written.
    /// - Throws: ``StoreError`` with `keyDoesNotFit`, or with `saltMissing` where the key lacks the salt that the file
    ///   does not hold.
    func run<Facts>(
        _ key: CipherKey, formats: [CipherSettings], _ inspector: Inspector, hasPlaintextHeader: Bool,
        _ body: (Connection) throws -> Facts
    ) throws -> Unlocked<Facts> {
        let interrupted = try AttemptRecord.read(paths)
        for settings in formats {
            let found = try read(key, settings, inspector, hasPlaintextHeader: hasPlaintextHeader) {
                (try $0.value(String.self, "PRAGMA journal_mode") == "wal", try body($0))
            }
            guard let (fileKey, (isWriteAheadLog, facts)) = found else { continue }
            return Unlocked(
                fileKey: fileKey, isWriteAheadLog: isWriteAheadLog || interrupted?.wasWriteAheadLog == true,
                facts: facts)
        }
        throw inspector.keyDoesNotFit()
    }

    /// Ends what a run that died after its commit left, where the file is to stay as it is.
    ///
    /// Returns what is to be told.
    @discardableResult
    func settle(_ fileKey: FileKey) throws -> [String] {
        try Attempts(paths: paths, options: options).settle(fileKey)
    }

    private func read<Facts>(
        _ key: CipherKey, _ settings: CipherSettings, _ inspector: Inspector, hasPlaintextHeader: Bool,
        _ body: (Connection) throws -> Facts
    ) throws -> (FileKey, Facts)? {
        func read() throws -> (FileKey, Facts)? {
            try inspector.readingEncrypted(key: key, settings: settings, hasPlaintextHeader: hasPlaintextHeader) {
                ($1, try body($0))
            }
        }
        do {
            return try read()
        } catch let error as StoreError where error.code == .needsRecovery {
            let unlocked = try inspector.fileKey(key, settings, hasPlaintextHeader: hasPlaintextHeader)
            do {
                try JournalRollback(paths: paths).run(unlocked, inspector: inspector)
            } catch let error as StoreError where error.code == .keyDoesNotFit {
                return nil
            }
            return try read()
        }
    }
}
