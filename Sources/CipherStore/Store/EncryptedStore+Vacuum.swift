public import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

extension EncryptedStore {
    /// Replaces the file with a proven copy that has no free pages.
    ///
    /// Rows, rowids and all else are the same; the copy is built beside the file, compared with it row by row, and
    /// swapped in one step, as in an encryption. It takes its turn among the writes, after the reads that run; calls
    /// made meanwhile wait, and the store has no connection. No other process may have the file open. A store that was
    /// opened to read only finds another file afterwards, and must be opened again.
    ///
    /// Cancelling the task ends it until the copy takes the file's place.
    ///
    /// - Parameter progress: Called with how far it is, on the thread that works.
    /// - Returns: What was copied and compared, and the sizes before and after.
    /// - Throws: ``StoreError``, with `busy` if another process, another store or a backup has the file open, with
    ///   `noSpace`, with `closed` or `suspended`; `CancellationError`. Until the swap no row has changed.
    @discardableResult
    public func vacuum(progress: (@Sendable (UpgradeProgress) -> Void)? = nil) async throws -> EncryptionReport {
        try await withConnectionsClosed(vacuuming(ownConnections(), progress))
    }

    /// Vacuums as ``vacuum(progress:)`` does, blocking the calling thread.
    ///
    /// - Throws: ``StoreError`` as that does, and with `misuse` inside a closure of this store.
    @available(*, noasync, message: "await vacuum(progress:) instead")
    @discardableResult
    public func vacuumBlocking(progress: (@Sendable (UpgradeProgress) -> Void)? = nil) throws -> EncryptionReport {
        try withConnectionsClosedBlocking(vacuuming(ownConnections(), progress))
    }

    private func vacuuming(
        _ connections: StoreConnections, _ progress: (@Sendable (UpgradeProgress) -> Void)?
    ) -> @Sendable (inout FileKey?, UpgradeCancellation) throws -> EncryptionReport {
        { [path] fileKey, cancellation in
            var options = ConversionOptions()
            options.extensions = connections.extensions
            options.busyTimeout = connections.busyTimeout
            options.progress = progress
            options.cancellation = cancellation
            return try Vacuum(DatabasePaths(path), fileKey, options: options).run()
        }
    }
}
