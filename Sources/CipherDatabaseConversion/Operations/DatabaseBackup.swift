internal import CipherErrors
package import CipherKeyProviders
internal import CipherSQLite
internal import CipherSystemFiles

/// A proven, encrypted copy of a database under another name, made while other connections write to the database.
///
/// The backup is built and proven from one commit in a file without a name. The file is then renamed into place in one
/// step that replaces nothing. A run that is killed leaves either nothing or the whole backup. Only on a file system
/// without nameless files may the run leave a file whose name is `.cipherstore-backup-` and 16 digits; no program reads
/// that file.
package struct DatabaseBackup {
    private let source: String
    private let sourceKey: FileKey?
    private let target: DatabasePaths
    private let provider: (any KeyProvider)?
    private let settings: CipherSettings
    private let options: ConversionOptions

    /// - Parameters:
    ///   - source: The path of the database, without symbolic links.
    ///   - sourceKey: The key that has already opened the database; `nil` for a plaintext database.
    ///   - target: The name of the backup.
    ///   - provider: Provides the key of the backup; `nil` to use the key and the format of the database.
    ///   - options: The options of the run. The format is used only if there is a provider.
    package init(
        of source: String, _ sourceKey: FileKey?, to target: String, provider: (any KeyProvider)?,
        options: ConversionOptions
    ) throws {
        self.source = source
        self.sourceKey = sourceKey
        self.target = try DatabasePaths(target)
        self.provider = provider.map(options.waiting)
        settings = provider == nil ? sourceKey?.settings ?? options.format : options.format
        self.options = options
    }

    /// Makes the backup.
    ///
    /// - Parameter holdingWriters: Prevents other connections from committing to the database.
    /// - Throws: ``StoreError``. In that case nothing exists under the target's name.
    package func run(holdingWriters: @escaping () throws -> any WriterHold) throws -> EncryptionReport {
        let began = ContinuousClock.now
        let observer = UpgradeObserver(
            path: target.database, report: options.progress, cancellation: options.cancellation)
        try observer.checkCancellation()
        let folder = try target.openFolder()
        try UnpublishedFile.checkName(target, in: folder, besides: source)
        var report = EncryptionReport(.backedUp, path: target.database)
        report.bytesBefore = try Connection.size(source)
        observer.totalBytes = report.bytesBefore
        try Preflight.checkRoom(for: report.bytesBefore, settings, target)
        let keys = try keys()
        defer { keys.cancel() }
        let file = try UnpublishedFile(in: folder, target)
        do {
            try observer.locating {
                _ = try ProvenCopy(
                    source: source, sourceKey: sourceKey, target: target.database, targetSettings: settings,
                    options: options, holdingWriters: holdingWriters
                ).make(file.content, keys, owner: nil, observer, &report)
                try observer.begin(.swapping)
                report.warnings += try file.publish()
            }
        } catch {
            file.remove()
            throw typed(error)
        }
        observer.finish()
        report.seconds = (ContinuousClock.now - began).inSeconds
        report.stageSeconds = observer.secondsByName
        return report
    }

    /// Attributes a full disk to the backup, and every other SQLite error to the database.
    private func typed(_ error: any Error) -> any Error {
        guard let error = error as? DatabaseError else { return error }
        guard !error.isFull else { return StoreError(error, path: target.database, during: .conversion) }
        return (try? Inspector(path: source))?.readFailure(error, during: .conversion) ?? error
    }

    private func keys() throws -> UpgradeKeys {
        guard let provider else {
            guard let key = sourceKey?.key else {
                throw StoreError(
                    .unexpectedPlaintext, path: source,
                    "the database is not encrypted, so there is no key for its backup",
                    advice: "pass a key for the backup", changed: .nothing)
            }
            // The text is parsed again so that the proof shares no key object with the builder.
            return try UpgradeKeys(key, again: CipherKey(text: key.text), settings: settings)
        }
        let key = try provider.checkedKey(for: .createOrExisting, database: target.database)
        try key.checkSalt(for: settings, path: target.database)
        return try UpgradeKeys(
            key, again: try provider.keyAskedAgain(key, database: target.database), settings: settings)
    }

}
