internal import CipherErrors

/// Bytes that are erased when they are released and are never displayed.
///
/// The memory is a private allocation, which is overwritten on release in a way that the compiler must not optimize
/// away. This type makes no copies. Descriptions, mirrors and errors show `<secret>`.
public final class SecretBytes: Sendable {
    // `@unchecked`, but thread-safe: the memory is never written after `init`, and is released only in `deinit`.
    private nonisolated(unsafe) let storage: UnsafeMutableRawBufferPointer
    private let onRelease: (@Sendable () -> Void)?

    /// The number of bytes.
    public var count: Int { storage.count }

    /// Creates a secret of `count` bytes, which `fill` fills in place.
    ///
    /// - Throws: Any error thrown by `fill`; the memory is erased first.
    public convenience init(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
        try self.init(count: count, onRelease: nil, fill: fill)
    }

    /// Creates a secret in the same way.
    ///
    /// - Parameter onRelease: Called after the bytes were erased, when no weak reference leads to them any more.
    package init(
        count: Int, onRelease: (@Sendable () -> Void)?, fill: (UnsafeMutableRawBufferPointer) throws -> Void
    ) rethrows {
        self.onRelease = onRelease
        storage = .allocate(byteCount: count, alignment: 16)
        storage.initializeMemory(as: UInt8.self, repeating: 0)
        try fill(storage)
    }

    /// Creates a secret with a copy of `bytes`.
    ///
    /// The caller must erase its own copy.
    public convenience init(_ bytes: some Collection<UInt8>) {
        self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    /// Returns `count` random bytes from the generator of libcrypto, or of the system on Apple platforms.
    ///
    /// - Throws: ``KeyError/noRandomness`` if the generator fails.
    public static func random(count: Int) throws -> SecretBytes {
        try SecretBytes(count: count) { buffer in
            guard Cryptography.randomize(buffer) else { throw KeyError.noRandomness }
        }
    }

    deinit {
        Cryptography.erase(storage)
        storage.deallocate()
        onRelease?()
    }

    /// Calls `body` with the bytes, which are valid only until it returns.
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(storage))
    }
}

extension SecretBytes: Equatable {
    /// Compares two secrets in a time that depends only on their lengths.
    public static func == (left: SecretBytes, right: SecretBytes) -> Bool {
        Cryptography.areEqual(UnsafeRawBufferPointer(left.storage), UnsafeRawBufferPointer(right.storage))
    }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `<secret>`.
    public var description: String { "<secret>" }
    /// Always `<secret>`.
    public var debugDescription: String { "<secret>" }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
