/// Ends an encryption upgrade from another thread; until the swap, no row has changed.
public final class UpgradeCancellation: @unchecked Sendable {
    // Both are read and written only under `lock`.
    private var cancelled = false
    private var waiting: [Lock] = []
    private let lock = Lock()
    private let others: [UpgradeCancellation]

    /// Not cancelled.
    public init() { others = [] }

    /// Cancelled as soon as one of some others is.
    package init(anyOf others: [UpgradeCancellation]) { self.others = others }

    /// Asks the upgrade to end.
    public func cancel() {
        let waiting = lock.withLock {
            cancelled = true
            return self.waiting
        }
        // Who waits under one of these asks for ``isCancelled`` under it, so both are never held here.
        for other in waiting { other.withLock { other.wakeAll() } }
    }

    /// Whether the upgrade was asked to end.
    public var isCancelled: Bool { lock.withLock { cancelled } || others.contains(where: \.isCancelled) }

    /// Holds `lock` while `body` runs, which is woken where it waits under it when the end is asked for.
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
