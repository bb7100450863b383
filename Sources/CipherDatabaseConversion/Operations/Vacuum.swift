internal import CipherErrors
internal import CipherSQLite

/// Replaces a file with its proven copy, which has no free pages, under the same key.
package struct Vacuum {
    private let paths: DatabasePaths
    private let fileKey: FileKey?
    private var options: ConversionOptions

    /// - Parameter fileKey: The key of the file; `nil` for a plaintext file.
    package init(_ paths: DatabasePaths, _ fileKey: FileKey?, options: ConversionOptions) {
        self.paths = paths
        self.fileKey = fileKey
        self.options = options
        self.options.keepBackup = false
    }

    /// Replaces the file with its copy.
    ///
    /// - Throws: ``StoreError``, with the code `busy` if another connection has the file open. Until the swap, no row
    ///   has changed.
    package func run() throws -> EncryptionReport {
        try options.withLockedFile(paths) { inspector, content in
            try Conversion(
                paths: paths, options: options, sourceKey: fileKey, targetSettings: fileKey?.settings
            ).run(
                .vacuumed, inspector, isWriteAheadLog: inspector.isWriteAheadLog(content, fileKey),
                targetKeys: { try keys() }
            ).report
        }
    }

    /// Returns the same key with the same salt.
    ///
    /// Its text is parsed again so that the proof shares no key object with the builder.
    private func keys() throws -> UpgradeKeys? {
        try fileKey.map { try UpgradeKeys($0.key, again: CipherKey(text: $0.key.text), settings: $0.settings) }
    }
}
