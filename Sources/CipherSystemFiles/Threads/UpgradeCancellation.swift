/// Cancels an encryption upgrade from another thread; until the swap, no row has changed.
public final class UpgradeCancellation: @unchecked Sendable {
    // Both properties are read and written only under `lock`.
    private var cancelled = false
    private var waiting: [Lock] = []
    private let lock = Lock()
    private let others: [UpgradeCancellation]

    /// Creates a cancellation that has not been requested.
    public init() { others = [] }

    /// Creates a cancellation that is requested as soon as one of the others is requested.
    package init(anyOf others: [UpgradeCancellation]) { self.others = others }

    /// Asks the upgrade to end.
    public func cancel() {
        let waiting = lock.withLock {
            cancelled = true
            return self.waiting
        }
        // A thread that waits under one of these locks checks ``isCancelled`` while it holds that lock, so this method
        // never holds both locks.
        for other in waiting { other.withLock { other.wakeAll() } }
    }

    /// Whether the upgrade was asked to end.
    public var isCancelled: Bool { lock.withLock { cancelled } || others.contains(where: \.isCancelled) }

    /// Holds `lock` while `body` runs; if `body` waits under the lock, a cancellation wakes it.
    package static func waking<Result>(
        _ lock: Lock, _ cancellation: UpgradeCancellation?, _ body: () throws -> Result
    ) rethrows -> Result {
        cancellation?.add(lock)
        defer { cancellation?.remove(lock) }
        return try lock.withLock(body)
    }

    private func add(_ other: Lock) {
        lock.withLock { waiting.append(other) }
        for cancellation in others { cancellation.add(other) }
    }

    private func remove(_ other: Lock) {
        for cancellation in others { cancellation.remove(other) }
        lock.withLock {
            if let index = waiting.firstIndex(where: { $0 === other }) { waiting.remove(at: index) }
        }
    }
}
