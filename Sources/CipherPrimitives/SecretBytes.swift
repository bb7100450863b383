internal import CipherErrors

/// Bytes that are erased when they are released and never shown.
///
/// The memory is a private allocation, overwritten on release in a way that the compiler may not leave out; no copy is made by this type.
/// Descriptions, mirrors and errors show `<secret>`.
public final class SecretBytes: Sendable {
    // Unchecked, and safe between threads: never written after `init`, and released only in `deinit`.
    private nonisolated(unsafe) let storage: UnsafeMutableRawBufferPointer

    /// The number of bytes.
    public var count: Int { storage.count }

    /// Fills a new secret of `count` bytes in place.
    ///
    /// - Throws: Whatever `fill` throws; the memory is erased first.
    public init(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
        storage = .allocate(byteCount: count, alignment: 16)
        storage.initializeMemory(as: UInt8.self, repeating: 0)
        try fill(storage)
    }

    /// Copies `bytes`.
    ///
    /// The caller erases its own copy.
    public convenience init(_ bytes: some Collection<UInt8>) {
        self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    /// Makes `count` random bytes with the generator of libcrypto, or of the system on Apple platforms.
    ///
    /// - Throws: ``KeyError/noRandomness`` when the generator fails.
    public static func random(count: Int) throws -> SecretBytes {
        try SecretBytes(count: count) { buffer in
            guard Cryptography.randomize(buffer) else { throw KeyError.noRandomness }
        }
    }

    deinit {
        Cryptography.erase(storage)
        storage.deallocate()
    }

    /// Lends the bytes for the length of `body`.
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(storage))
    }
}

extension SecretBytes: Equatable {
    /// Compares in a time that depends on the lengths only.
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
