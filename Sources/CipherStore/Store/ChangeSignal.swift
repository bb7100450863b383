internal import CipherSQLite
internal import CipherSystemFiles

/// Whether something was committed that an observer has not seen.
///
/// One task waits at a time. Commits are not queued: one that was not seen or a hundred make the same answer.
final class ChangeSignal: @unchecked Sendable {
    // Read and written only under `lock`.
    private let lock = Lock()
    private var isChanged: Bool
    /// What is observed.
    private var region: TableAccess
    /// What is committed while the observer reads; `nil` while it does not.
    private var meanwhile: TableAccess?
    private var failure: (any Error)?
    private var waiter: CheckedContinuation<Void, any Error>?

    /// - Parameter isChanged: Whether the first wait ends at once.
    init(region: TableAccess, isChanged: Bool) {
        self.region = region
        self.isChanged = isChanged
    }

    // MARK: The observer

    /// Returns as soon as something was committed since the last call.
    ///
    /// - Throws: `CancellationError`; what ended the observation.
    func wait() async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer = lock.withLock { () -> Result<Void, any Error>? in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if let failure { return .failure(failure) }
                    if isChanged {
                        isChanged = false
                        return .success(())
                    }
                    waiter = continuation
                    return nil
                }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            takeWaiter()?.resume(throwing: CancellationError())
        }
    }

    private func takeWaiter() -> CheckedContinuation<Void, any Error>? {
        lock.withLock {
            defer { waiter = nil }
            return waiter
        }
    }

    /// Has commits remembered that come while the observer reads.
    func beginReading() { lock.withLock { meanwhile = TableAccess() } }

    /// Ends it, with what was read.
    ///
    /// A commit that the reading may have missed makes the next ``wait()`` return at once.
    func endReading(_ region: TableAccess) {
        lock.withLock {
            self.region = region
            if meanwhile?.overlaps(region) == true { isChanged = true }
            meanwhile = nil
        }
    }

    // MARK: The store

    /// Tells the observer of a commit, if it touched what is observed.
    func committed(_ access: TableAccess) {
        let waiter = lock.withLock { () -> CheckedContinuation<Void, any Error>? in
            guard meanwhile == nil else {
                meanwhile?.formUnion(access)
                return nil
            }
            guard access.overlaps(region) else { return nil }
            isChanged = self.waiter == nil
            defer { self.waiter = nil }
            return self.waiter
        }
        waiter?.resume()
    }

    /// Ends the observation.
    func end(_ error: any Error) {
        lock.withLock { failure = error }
        takeWaiter()?.resume(throwing: error)
    }
}
