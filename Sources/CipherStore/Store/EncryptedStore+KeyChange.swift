public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherSystemFiles

extension EncryptedStore {
    /// Gives the database another key while it is read and written.
    ///
    /// The file is copied beside itself page by page, each opened with the present key and sealed with the new one, and
    /// compared; what is written meanwhile is copied again. Then the copy takes the file's place, as in a change of key
    /// of a closed file: reads that run end, writes wait for what has changed last, and all continue with the new key.
    /// So it is in SQLCipher 4's own format, with an engine of SQLite 3.33 or above, on a file system that has files
    /// without a name, as Linux's do; elsewhere all of it is done in the last step, while other calls wait.
    ///
    /// The app must be able to open the file with either key until this returns: after a crash at any moment it has the one
    /// or the other. ``KeyRotation`` opens it, and finishes: `.rotation(from: old, to: new)`. Given here, it is told when the
    /// old key can be dropped. A copy that was not finished is gone after a crash.
    ///
    /// Cancelling the task, and suspending the store, ends it until the copy takes the file's place.
    ///
    /// - Parameters:
    ///   - newKey: Gives the new key, and may create it; asked on another thread.
    ///   - progress: Called with how far it is, on the thread that works.
    /// - Returns: What was done. Tables are counted; rows are not, because pages are compared.
    /// - Throws: ``StoreError``, with `keyUnchanged` if the database has that key, with `unexpectedPlaintext` if it is
    ///   not encrypted, with `busy` if another process, another store or a backup has the file open, or a read
    ///   continues for longer than ``Options/busyTimeout``, with `noSpace`, with `closed` or `suspended`; what the
    ///   provider throws; `CancellationError`. The database has the old key then, and the store continues with it.
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

    /// Changes the key as ``changeKey(to:progress:)`` does, blocking the calling thread.
    ///
    /// The cancellation ends it from another thread.
    ///
    /// - Throws: ``StoreError`` as that does, with `cancelled` if it was cancelled in time, and with `misuse` inside a
    ///   closure of this store.
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

    /// How often other calls are held up for reads that do not end.
    private static let triesToSwitch = 3

    /// Copies what can be copied while the store works.
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

    /// Runs `body`, which has the file open and which a suspension ends.
    ///
    /// - Parameter body: Is given what brings the log into the file, as far as that is possible.
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
            path, "reads of the store took longer than the waiting time, \(Self.triesToSwitch) times",
            retry: .afterReads)
    }
}

extension EncryptionReport {
    /// The file has the new key by now, so that nothing is an error.
    fileprivate func retiringOnThread(_ change: OpenKeyChange) async -> EncryptionReport {
        do {
            return try await DetachedThread.run { retiring(change) }
        } catch {
            var report = self
            report.warnings.append(
                "the previous key is still kept; the next opening tells the provider again: no thread could be started")
            return report
        }
    }

    fileprivate func retiring(_ change: OpenKeyChange) -> EncryptionReport {
        var report = self
        if let warning = change.retirePreviousKey() { report.warnings.append(warning) }
        return report
    }
}
