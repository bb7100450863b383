internal import CipherErrors
package import CipherKeyProviders
package import CipherSQLite

/// Gives an encrypted database another key, another salt or another cipher format.
///
/// The file is built anew and proven, as in an encryption upgrade: a crash leaves it under the one key or the other, and
/// running again with both keys ends what was begun.
package struct Rekeying {
    private let paths: DatabasePaths
    private let change: KeyChange
    private let options: ConversionOptions

    /// - Parameters:
    ///   - oldKey: The key of the file as it is.
    ///   - newKey: The key of the file as it is to be; `nil` if it is to keep its key. A new key that does not exist
    ///     yet is made once the old one has opened the file.
    ///   - formats: The cipher settings that the file may have, in the order in which they are tried.
    ///   - newSettings: Those that it is to have.
    package init(
        at paths: DatabasePaths, oldKey: any KeyProvider, newKey: (any KeyProvider)?, formats: [CipherSettings],
        newSettings: CipherSettings, options: ConversionOptions
    ) {
        var options = options
        options.keepBackup = false
        self.options = options
        self.paths = paths
        let provider: any KeyProvider = newKey.map { .rotation(from: oldKey, to: $0) } ?? oldKey
        change = KeyChange(
            paths: paths, provider: options.waiting(for: provider),
            formats: [newSettings] + formats.filter { $0 != newSettings }, options: options)
    }

    /// Changes the key, or finds it changed.
    ///
    /// - Throws: ``StoreError``, with `keyDoesNotFit` if neither key opens the file, and with `keyUnchanged` where they
    ///   are equal. Until the swap no row has changed.
    package func run() throws -> EncryptionReport {
        try paths.checkInputs(of: change.provider)
        return try options.withLockedFile(paths) { inspector, content in
            guard case .opaque(let hasPlaintextHeader) = content else {
                throw StoreError(
                    .unexpectedPlaintext, path: paths.database, "the file is not encrypted, so it has no key to change",
                    advice: "encrypt it", changed: .nothing)
            }
            try change.checkKeysDiffer()
            let (file, _) = try FileUnlocking(
                paths, provider: change.provider, formats: change.formats, rollsBackJournal: true
            ).run(inspector, hasPlaintextHeader: hasPlaintextHeader) { _, _ in }
            guard change.isNeeded(for: file) else {
                let told = try Attempts(paths: paths, options: options).settle(file.fileKey)
                var report = try EncryptionReport(unchanged: .alreadyRekeyed, paths)
                report.warnings += told
                return report
            }
            return try change.convert(file, inspector).report
        }
    }
}
