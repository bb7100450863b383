public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherSystemFiles

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension EncryptedStore {
    /// Makes a proven, encrypted copy of the database under another name, while it is read and written.
    ///
    /// The backup is one commit of the database, compared with it row by row as an encryption is, and appears under its
    /// name whole, in one step that replaces nothing. It needs no `-wal` beside it, and opens like the database itself:
    /// if it has the store's own key, with that key and cipher format. Writers wait for a moment only, and the log
    /// grows meanwhile; where the file is not in WAL mode they wait until the backup is there. A backup that has begun
    /// ends well when the store is closed.
    ///
    /// Cancelling the task ends the backup until it has its name; nothing is left of it then.
    ///
    /// - Parameters:
    ///   - backup: Where the backup is to be. Its directory must exist, and no file may have its name.
    ///   - keyProvider: Gives the key of the backup, and may create it; `nil` for the store's own key. A store that is
    ///     not encrypted has none.
    ///   - progress: Called with how far the backup is, on the thread that works.
    /// - Returns: What was copied and compared; its path is that of the backup.
    /// - Throws: ``StoreError``, with `nameTaken` if something has the name of the backup, with `missingFile` if its
    ///   directory is missing, with `noSpace`, with `unexpectedPlaintext` if the store is not encrypted and no key was
    ///   given, with `busy` if another process keeps the lock of a writer, with `closed` after the store was closed;
    ///   `CancellationError`.
    @discardableResult
    public func backup(
        to backup: URL, keyProvider: (any KeyProvider)? = nil, progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await DetachedThread.cancellable { [self] in try backupHere(backup, keyProvider, progress, $0) }
    }

    /// Backs the database up as ``backup(to:keyProvider:progress:)`` does, blocking the calling thread.
    ///
    /// The cancellation ends the backup from another thread.
    ///
    /// - Throws: ``StoreError`` as that does, with `cancelled` if the backup was cancelled in time, and with `misuse`
    ///   inside a closure of this store.
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
