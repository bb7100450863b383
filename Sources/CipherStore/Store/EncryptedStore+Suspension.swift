package import CipherDatabaseConversion
internal import CipherErrors
package import CipherSystemFiles
internal import Dispatch

extension EncryptedStore {
    /// Closes all connections while the app sleeps, and refuses calls made meanwhile.
    ///
    /// After it has returned, the store has no file open and holds no lock: iOS ends an app that sleeps with a lock on
    /// a file that other processes share. The log is in the database file then, unless another process has it open.
    /// Earlier calls finish first. Every call after it fails with `suspended`, until ``resume()``; an observation
    /// waits, and continues with what was committed meanwhile.
    ///
    /// A second call waits for that too. If the store is resumed meanwhile, this returns at once, and where it is
    /// closed, after that.
    ///
    /// - Parameter limit: How long reads, writes and backups may continue. Then those that wait, and those that run a
    ///   statement or wait for a lock, fail with `suspended`; a write is undone, but for a commit that has begun. Of a
    ///   backup nothing is left, unless it has its name. A closure that does something else is waited for. `nil` for no
    ///   limit.
    public func suspend(interruptingAfter limit: Duration? = nil) async {
        beginSuspension(limit)
        await waitUntilSuspended()
    }

    /// Suspends the store as ``suspend(interruptingAfter:)`` does, blocking the calling thread.
    ///
    /// - Throws: ``StoreError`` with `misuse` inside a closure of this store, also by way of another store's, and where
    ///   a backup of it tells its progress.
    @available(*, noasync, message: "await suspend(interruptingAfter:) instead")
    public func suspendBlocking(interruptingAfter limit: Duration? = nil) throws {
        guard !backups.encloseCaller, conversion?.waitsForCaller != true else {
            throw StoreError(
                .misuse, path: path,
                "the progress callback of a backup or of the encryption would wait for itself",
                advice: "suspend the store on another thread")
        }
        try ConnectionQueue.waitForEnd(of: [readers, writer]) { done in
            beginSuspension(limit)
            whenSuspended(done)
        }
    }

    /// Serves calls again after ``suspend(interruptingAfter:)``; of a store that is not suspended it changes nothing.
    ///
    /// Connections are opened when they are needed, with the key that the store has. The next call fails with
    /// `replaced`, `missingFile`, `keyDoesNotFit` or `staleSidecar` if the file, its key or its log is another one by
    /// then: close the store and open it again.
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

    /// Has calls refused from now on.
    func beginSuspension(_ limit: Duration?) {
        conversion?.suspend()
        let (reading, writing) = suspension.withLock { (readers.suspend(), writer.suspend()) }
        guard let limit else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + max(0, limit.inSeconds)) {
            [suspension, readers, writer, backups] in
            // Under the lock, so that the store is not resumed in between.
            suspension.withLock { if writer.isSuspended(writing) { backups.interrupt() } }
            readers.interrupt(reading)
            writer.interrupt(writing)
        }
    }

    /// Returns once a suspension that has begun, or closing, has ended; at once where there is none.
    func waitUntilSuspended() async {
        await withCheckedContinuation { continuation in
            whenSuspended { continuation.resume() }
        }
    }

    /// The writer's connection is the last one, and brings the log into the file.
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
    /// It takes its turn among the writes. What reads run end first.
    ///
    /// - Parameters:
    ///   - limit: How long to wait for the reads that run, while others wait; `nil` for no limit.
    ///   - body: May put another database in the file's place, and then changes the key that it is given to that of the
    ///     other. The cancellation is that of the task, and that of a suspension whose limit has passed. If it ends
    ///     without an error it has succeeded, cancelled or not.
    /// - Throws: What `body` throws; ``ReadsGoOn`` after the limit; ``StoreError`` with `closed`, `suspended`, and
    ///   `misuse` if closures of several stores wait for each other; `CancellationError`.
    package func withConnectionsClosed<Output: Sendable>(
        waitingForReads limit: Duration? = nil,
        _ body: @escaping @Sendable (inout FileKey?, UpgradeCancellation) throws -> Output
    ) async throws -> Output {
        try ownConnections()
        return try await writer.runAlone(with: readers, waiting: limit, alone(body))
    }

    /// The same, which blocks the thread meanwhile.
    ///
    /// - Throws: As the other; ``StoreError`` with `misuse` inside a closure of this store.
    package func withConnectionsClosedBlocking<Output: Sendable>(
        waitingForReads limit: Duration? = nil,
        _ body: @escaping @Sendable (inout FileKey?, UpgradeCancellation) throws -> Output
    ) throws -> Output {
        try ownConnections()
        return try writer.runAloneBlocking(with: readers, waiting: limit, alone(body))
    }

    private func alone<Output>(
        _ body: @escaping @Sendable (inout FileKey?, UpgradeCancellation) throws -> Output
    ) -> @Sendable (UpgradeCancellation) throws -> Output {
        { [file, changes, watch] cancellation in
            defer {
                watch.renew(watch.current)
                changes.resume()
            }
            return try file.replacing { try body(&$0, cancellation) }
        }
    }
}
