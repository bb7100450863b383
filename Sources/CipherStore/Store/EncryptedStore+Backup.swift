public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
public import CipherSystemFiles

extension EncryptedStore {
    /// Creates a verified, encrypted copy of the database under another name, while the database is read and written.
    ///
    /// The backup is the state of one commit, compared with the database row by row as in an encryption. It appears
    /// under its name only when it is complete, in one step that never replaces a file. It needs no `-wal` beside it,
    /// and opens like the database itself; with the store's own key, it has the store's key and cipher format. Writers
    /// wait only briefly, and the log grows meanwhile. If the file is not in WAL mode, writers wait until the backup is
    /// finished. A backup that has begun finishes even if the store is closed.
    ///
    /// Canceling the task ends the backup at any time before it is renamed into place; nothing is then left of it.
    ///
    /// - Parameters:
    ///   - backup: The location of the backup. Its directory must exist, and no file may have its name.
    ///   - keyProvider: The provider of the backup's key, which may create it; `nil` for the store's own key. A store
    ///     that is not encrypted has no key.
    ///   - progress: A closure that receives the progress of the backup, on the thread that does the work.
    /// - Returns: A report of what was copied and compared; its path is that of the backup.
    /// - Throws: ``StoreError``, with the code `nameTaken` if the backup's name is taken, `missingFile` if its
    ///   directory is missing, `noSpace`, `unexpectedPlaintext` if the store is not encrypted and no key was passed,
    ///   `busy` if another process holds the write lock, or `closed` after the store was closed; `CancellationError`.
    @discardableResult
    public func backup(
        to backup: URL, keyProvider: (any KeyProvider)? = nil, progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await DetachedThread.cancellable { [self] in try backupHere(backup, keyProvider, progress, $0) }
    }

    /// Backs up the database as ``backup(to:keyProvider:progress:)`` does, but blocks the calling thread.
    ///
    /// Use `cancellation` to end the backup from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as that method, `cancelled` if the backup was canceled in time,
    ///   and `misuse` inside a closure of this store.
    @available(*, noasync, message: "await backup(to:keyProvider:progress:) instead")
    @discardableResult
    public func backupBlocking(
        to backup: URL, keyProvider: (any KeyProvider)? = nil, progress: (@Sendable (UpgradeProgress) -> Void)? = nil,
        cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        try backupHere(backup, keyProvider, progress, cancellation)
    }

    private func backupHere(
        _ backup: URL, _ keyProvider: (any KeyProvider)?, _ progress: (@Sendable (UpgradeProgress) -> Void)?,
        _ cancellation: UpgradeCancellation?
    ) throws -> EncryptionReport {
        try ConnectionQueue.waiting(for: writer, identity, path) { caller in
            guard !isClosed else { throw writer.closedError }
            let connections = try ownConnections()
            var options = ConversionOptions()
            options.extensions = connections.extensions
            options.busyTimeout = connections.busyTimeout
            options.progress = progress
            let cancellation = cancellation ?? UpgradeCancellation()
            options.cancellation = cancellation
            return try backups.run(cancellation, interrupted: writer.suspendedError) {
                // From here on the store does not encrypt the file.
                let fileKey = try file.settledKey(busyTimeout: connections.busyTimeout, cancellation)
                options.format = fileKey?.settings ?? options.format
                return try DatabaseBackup(
                    of: path, fileKey, to: backup.requiredPath(), provider: keyProvider, options: options
                ).run { [writer, path] in
                    try StoreWriterHold(writer, path: path, calledBy: caller, cancellation)
                }
            }
        }
    }
}
