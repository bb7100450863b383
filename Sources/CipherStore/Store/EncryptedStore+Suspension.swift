package import CipherDatabaseConversion
internal import CipherErrors
package import CipherSystemFiles
internal import Dispatch

extension EncryptedStore {
    /// Closes all connections while the app is suspended, and refuses calls made meanwhile.
    ///
    /// After this returns, the store has no file open and holds no lock: iOS ends a suspended app that holds a lock on
    /// a file shared with other processes. The log has then been moved into the database file, unless another process
    /// has that file open. Earlier calls finish first. Every later call fails with `suspended` until ``resume()``; an
    /// observation waits, and then continues with what was committed meanwhile.
    ///
    /// There is one exception: if this process has replaced the file, for example to encrypt it or to change its key,
    /// and the system cannot report which other processes had the old file open, as on Apple's systems, the old file
    /// stays open and locked until this process ends. The old file has no name any more, and the report of the
    /// conversion contains a warning.
    ///
    /// A second call waits for the same event. If the store is resumed meanwhile, this returns at once; if the store is
    /// closed meanwhile, this returns once it is closed.
    ///
    /// - Parameter limit: How long reads, writes and backups may continue; `nil` for no limit. After the limit, calls
    ///   that wait, run a statement or wait for a lock fail with `suspended`. A write is rolled back unless its commit
    ///   has begun. A backup leaves nothing behind unless it has already been renamed into place. A closure that is
    ///   doing anything else is allowed to finish first.
    public func suspend(interruptingAfter limit: Duration? = nil) async {
        beginSuspension(limit)
        await waitUntilSuspended()
    }

    /// Suspends the store as ``suspend(interruptingAfter:)`` does, but blocks the calling thread.
    ///
    /// - Throws: ``StoreError`` with the code `misuse` inside a closure of this store, even if called through another
    ///   store's closure, and inside the progress callback of one of its backups or of its encryption.
    @available(*, noasync, message: "await suspend(interruptingAfter:) instead")
    public func suspendBlocking(interruptingAfter limit: Duration? = nil) throws {
        guard !backups.encloseCaller, conversion?.waitsForCaller != true else {
            throw StoreError(
                .misuse, path: path,
                "suspendBlocking was called from the progress callback of a backup or an encryption, so the call "
                    + "would never return",
                advice: "suspend the store on another thread")
        }
        try ConnectionQueue.waitForEnd(of: [readers, writer]) { done in
            beginSuspension(limit)
            whenSuspended(done)
        }
    }

    /// Accepts calls again after ``suspend(interruptingAfter:)``; does nothing if the store is not suspended.
    ///
    /// Connections are opened when they are needed, with the key that the store has. If the file, its key or its log
    /// was replaced meanwhile, the next call fails with `replaced`, `missingFile`, `keyDoesNotFit` or `staleSidecar`;
    /// close the store and open it again.
    public func resume() {
        let wasSuspended = suspension.withLock { () -> Bool in
            guard readers.isSuspended else { return false }
            file.doubt()
            watch.renew(watch.current)
            readers.resume()
            writer.resume()
            return true
        }
        guard wasSuspended else { return }
        backups.release()
        conversion?.resume()
        changes.resume()
        events(.resumed)
    }

    /// Refuses calls from now on.
    func beginSuspension(_ limit: Duration?) {
        conversion?.suspend()
        let (reading, writing) = suspension.withLock { (readers.suspend(), writer.suspend()) }
        guard let limit else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + max(0, limit.inSeconds)) {
            [suspension, readers, writer, backups] in
            // The interruption runs under the lock so that the store is not resumed in between.
            suspension.withLock { if writer.isSuspended(writing) { backups.interrupt() } }
            readers.interrupt(reading)
            writer.interrupt(writing)
        }
    }

    /// Returns once a running suspension or closing has ended; at once if there is none.
    func waitUntilSuspended() async {
        await withCheckedContinuation { continuation in
            whenSuspended { continuation.resume() }
        }
    }

    /// Runs `body` once the connections are closed.
    ///
    /// The writer's connection closes last and moves the log into the file.
    private func whenSuspended(_ body: @escaping @Sendable () -> Void) {
        let files = watch.current
        let end: @Sendable () -> Void = { [readers, watch, events] in
            watch.renew(files)
            if readers.isSuspended { events(.suspended) }
            body()
        }
        readers.whenEnded { [writer, backups, conversion] in
            backups.whenEnded {
                writer.whenEnded {
                    guard let conversion else { return end() }
                    conversion.whenIdle(end)
                }
            }
        }
    }

    // MARK: Alone with the file

    /// Runs `body` while the store has no connection to the file; other calls wait meanwhile.
    ///
    /// It takes its turn among the writes. Running reads finish first.
    ///
    /// - Parameters:
    ///   - limit: How long to wait for running reads while other calls wait; `nil` for no limit.
    ///   - body: A closure that may replace the file with another database, and must then change the key that it
    ///     receives to the new database's key. Its cancellation combines the task's with that of a suspension whose
    ///     limit has passed. If it returns without an error it has succeeded, whether or not it was canceled.
    /// - Throws: Any error thrown by `body`; ``ReadsGoOn`` after the limit; ``StoreError`` with the code `closed`,
    ///   `suspended`, or `misuse` if closures of several stores wait for each other; `CancellationError`.
    package func withConnectionsClosed<Output: Sendable>(
        waitingForReads limit: Duration? = nil,
        _ body: @escaping @Sendable (inout FileKey?, UpgradeCancellation) throws -> Output
    ) async throws -> Output {
        try ownConnections()
        return try await writer.runAlone(with: readers, waiting: limit, alone(body))
    }

    /// Does the same as ``withConnectionsClosed(waitingForReads:_:)``, but blocks the calling thread.
    ///
    /// - Parameter isHeld: Whether another connection has had the file and its log open all the time; called if `body`
    ///   throws.
    /// - Throws: The same errors as that method; ``StoreError`` with the code `misuse` inside a closure of this store.
    package func withConnectionsClosedBlocking<Output: Sendable>(
        waitingForReads limit: Duration? = nil, holding isHeld: @escaping @Sendable () -> Bool = { false },
        _ body: @escaping @Sendable (inout FileKey?, UpgradeCancellation) throws -> Output
    ) throws -> Output {
        try ownConnections()
        return try writer.runAloneBlocking(with: readers, waiting: limit, alone(body, isHeld))
    }

    private func alone<Output>(
        _ body: @escaping @Sendable (inout FileKey?, UpgradeCancellation) throws -> Output,
        _ isHeld: @escaping @Sendable () -> Bool = { false }
    ) -> @Sendable (UpgradeCancellation) throws -> Output {
        { [file, changes, watch] cancellation in
            defer {
                watch.renew(watch.current)
                changes.resume()
            }
            return try file.replacing(holding: isHeld) { try body(&$0, cancellation) }
        }
    }
}
