internal import CipherHistory
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Turns a plaintext database into an encrypted one.
package struct EncryptionUpgrade {
    package let paths: DatabasePaths
    let provider: any KeyProvider
    package let options: ConversionOptions

    package init(path: String, provider: any KeyProvider, options: ConversionOptions = ConversionOptions()) throws {
        self.init(at: try DatabasePaths(path), provider: provider, options: options)
    }

    package init(at paths: DatabasePaths, provider: any KeyProvider, options: ConversionOptions) {
        self.init(paths, provider: options.waiting(for: provider), options: options)
    }

    package init(_ paths: DatabasePaths, provider: any KeyProvider, options: ConversionOptions) {
        self.paths = paths
        self.provider = provider
        self.options = options
    }

    /// Encrypts the file, or confirms that it is encrypted with the provider's key.
    ///
    /// - Throws: ``StoreError``. Until the swap, no row has changed. A journal may have been rolled back and a log
    ///   merged into the file, as SQLite does whenever it opens a file.
    package func run() throws -> EncryptionReport {
        try paths.checkInputs(of: provider)
        return try options.withLock(paths) {
            try recoveringDamage(formats: [options.format]) {
                try options.withFile(paths) { inspector, content in
                    switch content {
                    case .empty: try create()
                    case .plaintext: try encrypt(inspector, finishing: stamping(inspector)).report
                    case .opaque(let hasPlaintextHeader):
                        try confirmEncrypted(inspector, hasPlaintextHeader: hasPlaintextHeader)
                    }
                }
            } by: {
                try $0.run(finishing: InPlaceRecovery.stamp).report
            }
        }
    }

    /// Does everything that ``run()`` does up to the swap, discards the copy, and returns the report of ``run()`` with
    /// the outcome `shadow`.
    ///
    /// The database and its sidecars stay as they are. A file that is already encrypted with the key is reported as
    /// such.
    ///
    /// - Parameter rehearse: Changes the proven copy as the upgrade would before it replaced the file.
    /// - Throws: ``StoreError``.
    package func shadow(_ rehearse: ((Connection) throws -> Void)? = nil) throws -> EncryptionReport {
        try paths.checkInputs(of: provider)
        return try options.withLockedFile(paths) { inspector, content in
            switch content {
            case .empty: return EncryptionReport(.shadow, path: paths.database)
            case .plaintext: return try ShadowProof(upgrade: self, inspector: inspector).run(rehearse)
            case .opaque(let hasPlaintextHeader):
                let fileKey = try confirmKey(
                    inspector, hasPlaintextHeader: hasPlaintextHeader, rollsBackJournal: false)
                var report = try EncryptionReport(unchanged: .alreadyEncrypted, paths)
                report.warnings += fileKey.warnings
                return report
            }
        }
    }

    /// Returns the step that records the encryption in the history of a file that CipherStore intentionally left as
    /// plaintext.
    ///
    /// If the file cannot be read, the conversion reports why.
    private func stamping(_ inspector: Inspector) -> ((Connection) throws -> Void)? {
        let stamp = try? inspector.readingPlaintext { try HistoryTable.stamp($0) }
        guard case .plaintext? = stamp ?? nil else { return nil }
        return { try HistoryTable.append(.encrypted, in: $0) }
    }

    /// Creates an encrypted database for a file of 0 bytes, which is a database without tables, or for a missing file.
    private func create() throws -> EncryptionReport {
        let made = try FreshDatabase(paths: paths, upgrade: self).publish { connection in
            // Any write creates the file's first page.
            try connection.execute("PRAGMA user_version = 0")
        }
        var report = EncryptionReport(.created, path: paths.database)
        report.warnings = made.warnings
        report.bytesAfter = (try? FileSystem.size(paths.database)) ?? 0
        return report
    }

    private func confirmEncrypted(_ inspector: Inspector, hasPlaintextHeader: Bool) throws -> EncryptionReport {
        let fileKey = try confirmKey(inspector, hasPlaintextHeader: hasPlaintextHeader, rollsBackJournal: true)
        let told = try Attempts(paths: paths, options: options).settle(fileKey)
        var report = try EncryptionReport(unchanged: .alreadyEncrypted, paths)
        report.warnings += told + fileKey.warnings
        return report
    }

    /// Opens the file with the key that later openings will use, not one that a rotation replaces.
    private func confirmKey(
        _ inspector: Inspector, hasPlaintextHeader: Bool, rollsBackJournal: Bool
    ) throws -> FileKey {
        try FileUnlocking(
            paths, provider: provider, formats: [options.format], rollsBackJournal: rollsBackJournal,
            takesPreviousKey: false
        ).run(inspector, hasPlaintextHeader: hasPlaintextHeader) { _, _ in }.file.fileKey
    }

    /// Encrypts a plaintext file.
    ///
    /// The caller holds the lock.
    ///
    /// - Parameter finishing: Changes the proven copy before it replaces the file.
    package func encrypt(
        _ inspector: Inspector, finishing: ((Connection) throws -> Void)? = nil
    ) throws -> (report: EncryptionReport, fileKey: FileKey) {
        var conversion = Conversion(paths: paths, options: options, sourceKey: nil, targetSettings: options.format)
        conversion.keyProvider = provider
        // A hot journal restores page 1 before anything is read.
        let restored = try HotJournal(paths)?.firstPage().map { FileHeader(bytes: $0, fileSize: 0) }
        let wasWriteAheadLog = try (restored ?? inspector.header()).isWriteAheadLog
        let (report, fileKey) = try conversion.run(
            .encrypted, inspector, isWriteAheadLog: wasWriteAheadLog,
            targetKeys: {
                let key = try newFileKey()
                return try UpgradeKeys(key, again: try keyAskedAgain(key), settings: options.format)
            }, finishing: finishing)
        guard let fileKey else { throw inspector.keyDoesNotFit() }
        return (report, fileKey)
    }

    /// Returns the key for a new file.
    ///
    /// The provider may create it now.
    func newFileKey() throws -> CipherKey {
        let key = try provider.checkedKey(for: .createOrExisting, database: paths.database)
        try key.checkSalt(for: options.format, path: paths.database)
        return key
    }

    /// Refuses a key that ``newFileKey()`` would refuse, and creates none.
    ///
    /// - Returns: Whether there is a key.
    package func hasFileKey() throws -> Bool {
        guard let key = try provider.checkedPlannedKey(database: paths.database) else { return false }
        try key.checkSalt(for: options.format, path: paths.database)
        return true
    }

    /// Requests the key again, as the next opening of the file would.
    ///
    /// The key must be the same as `first`.
    func keyAskedAgain(_ first: CipherKey) throws -> CipherKey {
        try provider.keyAskedAgain(first, database: paths.database)
    }
}
