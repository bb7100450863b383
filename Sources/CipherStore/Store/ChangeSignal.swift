internal import CipherSQLite
internal import CipherSystemFiles

/// Signals whether anything was committed that an observer has not seen.
///
/// Only one task may wait at a time. Commits are not queued: one unseen commit and a hundred have the same effect.
final class ChangeSignal: @unchecked Sendable {
    // Read and written only under `lock`.
    private let lock = Lock()
    private var isChanged: Bool
    /// The observed tables and columns.
    private var region: TableAccess
    /// The changes committed while the observer reads; `nil` while it does not.
    private var meanwhile: TableAccess?
    private var failure: (any Error)?
    private var waiter: CheckedContinuation<Void, any Error>?

    /// - Parameter isChanged: Whether the first wait returns at once.
    init(region: TableAccess, isChanged: Bool) {
        self.region = region
        self.isChanged = isChanged
    }

    // MARK: The observer

    /// Returns as soon as a commit has been made since the last call.
    ///
    /// - Throws: `CancellationError`; the error that ended the observation.
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

    /// Starts to record the commits that arrive while the observer reads.
    func beginReading() { lock.withLock { meanwhile = TableAccess() } }

    /// Ends the reading, and sets the region to what was read.
    ///
    /// If the reading may have missed a commit, the next ``wait()`` returns at once.
    func endReading(_ region: TableAccess) {
        lock.withLock {
            self.region = region
            if meanwhile?.overlaps(region) == true { isChanged = true }
            meanwhile = nil
        }
    }

    // MARK: The store

    /// Notifies the observer of a commit if it touched the observed region.
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
