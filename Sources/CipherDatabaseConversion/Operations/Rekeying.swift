internal import CipherErrors
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSystemFiles

/// Changes the key, the salt or the cipher format of an encrypted database.
///
/// The file is rebuilt and proven, as in an encryption upgrade. After a crash, the file has either the old key or the
/// new one, and another run with both keys completes the change.
package struct Rekeying {
    private let paths: DatabasePaths
    private let change: KeyChange
    private let options: ConversionOptions
    private let hasNewKey: Bool

    /// - Parameters:
    ///   - oldKey: Provides the current key of the file.
    ///   - newKey: Provides the new key of the file; `nil` to keep the key. A new key that does not exist yet is
    ///     created once the old one has opened the file.
    ///   - formats: The cipher settings that the file may have, in the order in which they are tried.
    ///   - newSettings: The new cipher settings of the file.
    package init(
        at paths: DatabasePaths, oldKey: any KeyProvider, newKey: (any KeyProvider)?, formats: [CipherSettings],
        newSettings: CipherSettings, options: ConversionOptions
    ) {
        var options = options
        options.keepBackup = false
        self.options = options
        self.paths = paths
        hasNewKey = newKey != nil
        let provider: any KeyProvider = newKey.map { .rotation(from: oldKey, to: $0) } ?? oldKey
        change = KeyChange(
            paths: paths, provider: options.waiting(for: provider),
            formats: [newSettings] + formats.filter { $0 != newSettings }, options: options)
    }

    /// Changes the key, or confirms that it has already been changed.
    ///
    /// - Throws: ``StoreError``, with the code `keyDoesNotFit` if neither key opens the file, and `keyUnchanged` if
    ///   they are equal. Until the swap, no row has changed.
    package func run() throws -> EncryptionReport {
        try paths.checkInputs(of: change.provider)
        return try options.withLockedFile(paths) { inspector, content in
            guard case .opaque(let hasPlaintextHeader) = content else {
                throw StoreError(
                    .unexpectedPlaintext, path: paths.database, "the file is not encrypted, so it has no key to change",
                    advice: "encrypt the file instead", changed: .nothing)
            }
            try change.checkKeysDiffer()
            let (file, _) = try FileUnlocking(
                paths, provider: change.provider, formats: change.formats, rollsBackJournal: true
            ).run(inspector, hasPlaintextHeader: hasPlaintextHeader) { _, _ in }
            var report: EncryptionReport
            if change.isNeeded(for: file) {
                report = try change.convert(file, inspector).report
            } else {
                let told = try Attempts(paths: paths, options: options).settle(file.fileKey)
                report = try EncryptionReport(unchanged: .alreadyRekeyed, paths)
                report.warnings += told + file.fileKey.warnings
            }
            if hasNewKey, let kept = try? paths.encryptedDamagedOriginal() {
                report.warnings.append(
                    "\(SystemPath.printable(kept)) may be encrypted with the previous key: keep that key until you know "
                        + "that nothing is missing from the database and have deleted that file")
            }
            return report
        }
    }
}
