public import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

extension EncryptedStore {
    /// Replaces the file with a verified copy that has no free pages.
    ///
    /// Rows, rowids and all other content stay the same. The copy is built beside the file, compared with it row by
    /// row, and swapped in one step, as in an encryption. The operation takes its turn among the writes, after running
    /// reads finish; meanwhile the store has no connection, and calls wait. No other process may have the file open. A
    /// store that was opened read-only finds a different file afterwards, and must be opened again.
    ///
    /// Canceling the task ends the operation at any time before the copy replaces the file.
    ///
    /// - Parameter progress: A closure that receives the progress, on the thread that does the work.
    /// - Returns: A report of what was copied and compared, including the sizes before and after.
    /// - Throws: ``StoreError``, with the code `busy` if another process, another store or a backup has the file open or
    ///   the store's ``conversion`` has not ended, `noSpace`, `closed` or `suspended`; `CancellationError`. No row changes before the swap.
    @discardableResult
    public func vacuum(progress: (@Sendable (UpgradeProgress) -> Void)? = nil) async throws -> EncryptionReport {
        try await withConnectionsClosed(vacuuming(ownConnections(), progress))
    }

    /// Vacuums as ``vacuum(progress:)`` does, but blocks the calling thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as that method, and `misuse` inside a closure of this store.
    @available(*, noasync, message: "await vacuum(progress:) instead")
    @discardableResult
    public func vacuumBlocking(progress: (@Sendable (UpgradeProgress) -> Void)? = nil) throws -> EncryptionReport {
        try withConnectionsClosedBlocking(vacuuming(ownConnections(), progress))
    }

    private func vacuuming(
        _ connections: StoreConnections, _ progress: (@Sendable (UpgradeProgress) -> Void)?
    ) -> @Sendable (inout FileKey?, UpgradeCancellation) throws -> EncryptionReport {
        { [path, conversion] fileKey, cancellation in
            if conversion?.isActive == true {
                throw StoreError.busy(path, "the store's database is being encrypted", retry: .afterEncryption)
            }
            var options = ConversionOptions()
            options.extensions = connections.extensions
            options.busyTimeout = connections.busyTimeout
            options.progress = progress
            options.cancellation = cancellation
            return try Vacuum(DatabasePaths(path), fileKey, options: options).run()
        }
    }
}
