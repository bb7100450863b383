import CipherSQLite

/// Opens an encrypted file for whoever goes on with it, and ends what a run that died after its commit left.
struct FileUnlocking {
    let paths: DatabasePaths
    let options: EncryptionUpgrade.Options

    /// Shows that the key fits in one of several formats, which are tried in order, before the file is converted.
    ///
    /// - Returns: The key, and whether the app keeps the file in WAL mode.
    func run(
        _ key: CipherKey, formats: [CipherSettings], _ inspector: Inspector, hasPlaintextHeader: Bool
    ) throws -> (FileKey, isWriteAheadLog: Bool) {
        let interrupted = try AttemptRecord.read(paths)
        for settings in formats {
            var options = options
            options.settings = settings
            do {
                let (fileKey, mode) = try FileUnlocking(paths: paths, options: options)
                    .run(key, inspector, hasPlaintextHeader: hasPlaintextHeader) {
                        try $0.value(String.self, "PRAGMA journal_mode")
                    }
                // What died had taken the file out of WAL mode, and it is in it again by now.
                return (fileKey, mode == "wal" || interrupted?.wasWriteAheadLog == true)
            } catch let error as StoreError where error.code == .keyDoesNotFit {
                continue
            }
        }
        throw inspector.keyDoesNotFit()
    }

    /// Shows that the key fits.
    ///
    /// The upgrade lock is held.
    ///
    /// - Parameter body: Reads facts from the file, before anything is written.
    /// - Throws: ``StoreError`` with `keyDoesNotFit`.
    func run<Facts>(
        _ key: CipherKey, _ inspector: Inspector, hasPlaintextHeader: Bool, _ body: (Connection) throws -> Facts
    ) throws -> (FileKey, Facts) {
        func read() throws -> (FileKey, Facts) {
            let found = try inspector.readingEncrypted(
                key: key, settings: options.settings, hasPlaintextHeader: hasPlaintextHeader
            ) { ($1, try body($0)) }
            guard let found else { throw inspector.keyDoesNotFit() }
            return found
        }
        let result: (FileKey, Facts)
        do {
            result = try read()
        } catch let error as StoreError where error.code == .needsRecovery {
            let unlocked = try inspector.fileKey(key, options.settings, hasPlaintextHeader: hasPlaintextHeader)
            try EncryptedRecovery(paths: paths).run(unlocked, inspector: inspector)
            result = try read()
        }
        let attempts = Attempts(paths: paths, options: options)
        if let record = try AttemptRecord.read(paths) { _ = attempts.end(record, result.0) }
        try Recovery.sweep(paths)
        return result
    }
}
