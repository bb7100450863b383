internal import CipherErrors
package import CipherKeyProviders
internal import CipherSQLite
internal import CipherSystemFiles

/// A proven, encrypted copy of a database under another name, made while others write the database.
///
/// Built and proven over one commit in a file without a name, which then gets its name in one step that replaces nothing. A
/// run that dies leaves nothing, or the whole backup; only on a file system without nameless files it may leave
/// `.cipherstore-backup-` and 16 digits, which nothing reads.
package struct DatabaseBackup {
    private let source: String
    private let sourceKey: FileKey?
    private let target: DatabasePaths
    private let provider: (any KeyProvider)?
    private let settings: CipherSettings
    private let options: ConversionOptions

    /// - Parameters:
    ///   - source: The database, without symbolic links.
    ///   - sourceKey: Its key, which has been tried; `nil` for a plaintext one.
    ///   - target: The name of the backup.
    ///   - provider: Gives the key of the backup; `nil` for the key and the format of the database.
    ///   - options: The format counts only where a provider is given.
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
    /// - Parameter holdingWriters: Keeps others from committing to the database.
    /// - Throws: ``StoreError``. There is nothing under the target's name then.
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

    /// A full disk is the backup's; what else SQLite reports is read from the database.
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
                    advice: "give the backup a key", changed: .nothing)
            }
            // Read anew, so that the proof shares no key object with the builder.
            return try UpgradeKeys(key, again: CipherKey(text: key.text), settings: settings)
        }
        let key = try provider.checkedKey(for: .createOrExisting, database: target.database)
        try key.checkSalt(for: settings, path: target.database)
        return try UpgradeKeys(
            key, again: try provider.keyAskedAgain(key, database: target.database), settings: settings)
    }

}
