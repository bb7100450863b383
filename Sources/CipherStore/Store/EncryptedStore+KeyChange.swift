public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherSystemFiles

extension EncryptedStore {
    /// Changes the key of the database while it is read and written.
    ///
    /// The file is copied page by page to a new file: each page is decrypted with the present key, encrypted with the
    /// new one, and compared. Pages written meanwhile are copied again. Then the copy replaces the file, as in a key
    /// change of a closed file: running reads finish, writes wait until the latest changes are copied, and all continue
    /// with the new key. This requires SQLCipher 4's own format, SQLite 3.33 or later, and a file system that supports
    /// files without a name, as on Linux. Otherwise the complete copy is made in the last step, while other calls wait.
    ///
    /// Until this returns, the app must be able to open the file with either key: after a crash at any moment, the file
    /// has one of the two keys. ``KeyRotation`` opens it and finishes the change: `.rotation(from: old, to: new)`. If
    /// such a rotation is passed here, it is notified when the old key can be dropped. A crash leaves nothing of an
    /// unfinished copy.
    ///
    /// Canceling the task or suspending the store ends the change at any time before the copy replaces the file.
    ///
    /// - Parameters:
    ///   - newKey: The provider of the new key, which may create it; called on another thread.
    ///   - progress: A closure that receives the progress, on the thread that does the work.
    /// - Returns: A report of what was done. It contains the number of tables but not of rows, because pages are
    ///   compared.
    /// - Throws: ``StoreError``, with the code `keyUnchanged` if the database already has that key,
    ///   `unexpectedPlaintext` if it is not encrypted, `busy` if another process, another store or a backup has the
    ///   file open or a read continues for longer than ``Options/busyTimeout``, `noSpace`, `closed` or `suspended`; any
    ///   error of the provider; `CancellationError`. After an error the database still has the old key, and the store
    ///   continues with it.
    @discardableResult
    public func changeKey(
        to newKey: any KeyProvider, progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        let change = try await DetachedThread.cancellable { [self] in try prepareKeyChange(to: newKey, progress, $0) }
        var tries = 0
        while true {
            do {
                let report = try await withConnectionsClosed(
                    waitingForReads: ownConnections().busyTimeout, change.finish)
                return await report.retiringOnThread(change)
            } catch is ReadsGoOn {
                tries += 1
                guard tries < Self.triesToSwitch else { throw readsGoOn }
                try await DetachedThread.cancellable { [self] in try catchUp(change, $0) }
            }
        }
    }

    /// Changes the key as ``changeKey(to:progress:)`` does, but blocks the calling thread.
    ///
    /// Use `cancellation` to end it from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as that method, `cancelled` if the change was canceled in time,
    ///   and `misuse` inside a closure of this store.
    @available(*, noasync, message: "await changeKey(to:progress:) instead")
    @discardableResult
    public func changeKeyBlocking(
        to newKey: any KeyProvider, progress: (@Sendable (UpgradeProgress) -> Void)? = nil,
        cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        let cancellation = cancellation ?? UpgradeCancellation()
        let change = try prepareKeyChange(to: newKey, progress, cancellation)
        var tries = 0
        while true {
            do {
                if cancellation.isCancelled { throw StoreError.cancelled(path) }
                return try withConnectionsClosedBlocking(
                    waitingForReads: ownConnections().busyTimeout, change.finish
                ).retiring(change)
            } catch is ReadsGoOn {
                tries += 1
                guard tries < Self.triesToSwitch else { throw readsGoOn }
                try catchUp(change, cancellation)
            }
        }
    }

    /// The number of times that other calls must wait while the key change waits for reads that do not end.
    private static let triesToSwitch = 3

    /// Copies everything that can be copied while the store stays in use.
    private func prepareKeyChange(
        to newKey: any KeyProvider, _ progress: (@Sendable (UpgradeProgress) -> Void)?,
        _ cancellation: UpgradeCancellation
    ) throws -> OpenKeyChange {
        try ConnectionQueue.waiting(for: writer, identity, path) { _ in
            guard !isClosed else { throw writer.closedError }
            let connections = try ownConnections()
            guard let fileKey = try file.key(busyTimeout: connections.busyTimeout) else {
                throw StoreError(
                    .unexpectedPlaintext, path: path, "the database is not encrypted, so it has no key to change",
                    advice: "turn encryption on in the configuration and open the store again", changed: .nothing)
            }
            var options = ConversionOptions()
            options.extensions = connections.extensions
            options.busyTimeout = connections.busyTimeout
            options.progress = events.progress(progress)
            options.cancellation = cancellation
            return try copying(cancellation) {
                let change = try OpenKeyChange(DatabasePaths(path), fileKey, to: newKey, options: options)
                try change.prepare(cancellation, $0)
                return change
            }
        }
    }

    private func catchUp(_ change: OpenKeyChange, _ cancellation: UpgradeCancellation) throws {
        try copying(cancellation) { try change.catchUp(cancellation, $0) }
    }

    /// Runs `body`, which has the file open and is ended by a suspension.
    ///
    /// - Parameter body: A closure that receives a function that moves the log into the file, as far as that is
    ///   possible.
    private func copying<Output>(
        _ cancellation: UpgradeCancellation, _ body: (() throws -> Void) throws -> Output
    ) throws -> Output {
        try backups.run(cancellation, interrupted: writer.suspendedError) {
            try body { [writer] in
                _ = try writer.runBlocking(.outside) { try $0.checkpointer?.truncateLog() ?? true }
            }
        }
    }

    private var readsGoOn: StoreError {
        .busy(
            path,
            "in \(Self.triesToSwitch) consecutive attempts, reads from the store did not finish within the busy "
                + "timeout",
            retry: .afterReads)
    }
}

extension EncryptionReport {
    /// Retires the previous key.
    ///
    /// The file already has the new key, so no failure here is an error.
    fileprivate func retiringOnThread(_ change: OpenKeyChange) async -> EncryptionReport {
        do {
            return try await DetachedThread.run { retiring(change) }
        } catch {
            var report = self
            report.warnings.append(
                "the previous key was not discarded, because a thread could not be started; when the "
                    + "database is next opened, the key provider will be told that the key is obsolete")
            return report
        }
    }

    fileprivate func retiring(_ change: OpenKeyChange) -> EncryptionReport {
        var report = self
        if let warning = change.retirePreviousKey() { report.warnings.append(warning) }
        return report
    }
}
