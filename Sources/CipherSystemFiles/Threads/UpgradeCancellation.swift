/// Ends an encryption upgrade from another thread; until the swap, nothing has changed.
public final class UpgradeCancellation: @unchecked Sendable {
    // Read and written only under `lock`.
    private var cancelled = false
    private let lock = Lock()

    /// Not cancelled.
    public init() {}

    /// Asks the upgrade to end.
    public func cancel() { lock.withLock { cancelled = true } }

    /// Whether the upgrade was asked to end.
    public var isCancelled: Bool { lock.withLock { cancelled } }
}
