internal import CipherPlatform

/// Collects text and writes it to a file descriptor in large pieces.
///
/// Unlike the C library's streams, it reports a failed write, so that a full disk is not mistaken for success.
final class FileDescriptorStream: @unchecked Sendable {
    // Used by the main thread only.
    private var buffer: [UInt8] = []
    private let descriptor: Int32
    private(set) var hasBegun = false
    /// Whether nothing is written before ``flush()`` is called.
    var holdsBack = false

    /// Whether the descriptor is a terminal.
    var isTerminal: Bool { isatty(descriptor) == 1 }

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    func write(_ text: String) throws { try write(text.utf8) }

    func write(_ bytes: some Sequence<UInt8>) throws {
        hasBegun = true
        buffer += bytes
        if !holdsBack, buffer.count >= 64 << 10 { try flush() }
    }

    func flush() throws {
        guard !buffer.isEmpty else { return }
        let bytes = buffer
        // After a failure the rest is discarded: the reader has exited or the disk is full.
        buffer = []
        let reason = Self.writeAll(bytes, to: descriptor)
        guard reason == 0 else {
            let isFull = reason == ENOSPC || reason == EFBIG || reason == EDQUOT
            throw CommandFailure(
                isFull ? .cannotCreate : .inputOutput, isFull ? "noSpace" : "inputOutput",
                "writing to standard output failed: \(String(cString: strerror(reason)))")
        }
    }

    /// Writes all bytes and returns 0, or the `errno` of the write that failed.
    @discardableResult
    static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        bytes.withUnsafeBytes { writeAll($0, to: descriptor) }
    }

    /// Writes all bytes, without a copy of them, and returns 0, or the `errno` of the write that failed.
    static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = systemWrite(descriptor, UnsafeRawBufferPointer(rebasing: rest))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count < 0 ? errno : EIO }
            rest = rest.dropFirst(count)
        }
        return 0
    }
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(descriptor, bytes.baseAddress, bytes.count)
}
