internal import CipherHistory
package import CipherKeyProviders
package import CipherSQLite

/// Turns an encrypted database into a plaintext one, which undoes an encryption.
package struct Decryption {
    private let paths: DatabasePaths
    private let provider: any KeyProvider
    private let formats: [CipherSettings]
    private var options: ConversionOptions

    /// - Parameter formats: The cipher settings that the file may have, in the order in which they are tried.
    package init(
        path: String, provider: any KeyProvider, formats: [CipherSettings], options: ConversionOptions
    ) throws {
        self.init(try DatabasePaths(path), provider: options.waiting(for: provider), formats: formats, options: options)
    }

    package init(
        _ paths: DatabasePaths, provider: any KeyProvider, formats: [CipherSettings],
        options: ConversionOptions
    ) {
        self.paths = paths
        self.provider = provider
        self.formats = formats
        self.options = options
        self.options.keepBackup = false
    }

    /// Decrypts the file, or confirms that it is plaintext.
    ///
    /// - Throws: ``StoreError``. Until the swap, no row has changed.
    package func run() throws -> EncryptionReport {
        try paths.checkInputs(of: provider)
        return try options.withLockedFile(paths) { inspector, content in
            switch content {
            case .empty: return try EncryptionReport(unchanged: .alreadyPlaintext, paths)
            case .plaintext:
                // A run that was interrupted after its commit may have left cleanup work.
                let told = try Attempts(paths: paths, options: options).settle(nil)
                var report = try EncryptionReport(unchanged: .alreadyPlaintext, paths)
                report.warnings += told
                return report
            case .opaque(let hasPlaintextHeader):
                let (file, hasHistory) = try FileUnlocking(
                    paths, provider: provider, formats: formats, rollsBackJournal: true
                ).run(inspector, hasPlaintextHeader: hasPlaintextHeader) { connection, _ in
                    (try? HistoryTable.exists(connection)) ?? false
                }
                // Without this entry, the app's next launch would assume that another program put the plaintext file
                // there.
                return try decrypt(
                    file, inspector,
                    finishing: hasHistory ? { try HistoryTable.append(.openedPlaintext, in: $0) } : nil)
            }
        }
    }

    /// Decrypts a file whose key is known.
    ///
    /// The caller holds the lock.
    ///
    /// - Parameter finishing: Changes the proven copy before it replaces the file.
    package func decrypt(
        _ file: FileUnlocking.Unlocked, _ inspector: Inspector, finishing: ((Connection) throws -> Void)? = nil
    ) throws -> EncryptionReport {
        let conversion = Conversion(paths: paths, options: options, sourceKey: file.fileKey, targetSettings: nil)
        return try conversion.run(
            .decrypted, inspector, isWriteAheadLog: file.isWriteAheadLog, targetKeys: { nil }, finishing: finishing
        ).report
    }
}
