internal import CipherErrors
internal import CipherSystemFiles

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Reads a file or standard input piece by piece, and splits it at a separator byte.
///
/// It holds one piece and one unfinished line, however long the file is.
struct LineReader: ~Copyable {
    private let descriptor: Int32
    private let path: String
    private let isOwned: Bool
    private var buffer: [UInt8] = []
    private var start = 0
    private var hasEnded = false
    /// Whether the line that was returned last ended with the separator.
    private(set) var wasWhole = true

    private static let piece = 256 << 10

    /// Opens a file, or standard input for `-`.
    ///
    /// - Throws: ``StoreError`` if the file cannot be read.
    init(_ path: String) throws {
        self.path = path
        isOwned = path != "-"
        descriptor = isOwned ? path.withSystemPath { open($0, O_RDONLY | O_CLOEXEC) } : 0
        guard descriptor >= 0 else { throw FileSystem.failure("be read", path, needs: .read) }
    }

    deinit {
        if isOwned { close(descriptor) }
    }

    /// Returns whether a byte is among the first `count` bytes; reads that many bytes, or up to the first such byte or
    /// the end.
    mutating func begins(with byte: UInt8, within count: Int) throws -> Bool {
        while buffer.count < count, !hasEnded, !buffer.contains(byte) { try fill() }
        return buffer.prefix(count).contains(byte)
    }

    /// Returns the next line without its separator; `nil` at the end.
    ///
    /// - Throws: ``StoreError`` if reading fails, with the code `notAFile` if a line is longer than `longest`.
    mutating func next(separator: UInt8, longest: Int) throws -> ArraySlice<UInt8>? {
        var looked = start
        while true {
            if let end = buffer[looked...].firstIndex(of: separator) {
                defer { start = end + 1 }
                wasWhole = true
                return buffer[start..<end]
            }
            let unfinished = buffer.count - start
            guard !hasEnded else {
                guard unfinished > 0 else { return nil }
                defer { start = buffer.count }
                wasWhole = false
                return buffer[start...]
            }
            guard unfinished <= longest else {
                throw StoreError(
                    .notAFile, path: path,
                    "this file is neither a list of files nor a fleet report: one of its lines is longer than "
                        + "\(longest) bytes",
                    advice: "pass a list with one file name per line, or a report that was created with --report")
            }
            looked = unfinished
            try fill()
        }
    }

    /// Reads one more piece, and drops the lines that were already returned.
    private mutating func fill() throws {
        buffer.removeFirst(start)
        start = 0
        let held = buffer.count
        buffer += [UInt8](repeating: 0, count: Self.piece)
        while true {
            let count = buffer.withUnsafeMutableBytes { bytes in
                read(descriptor, bytes.baseAddress?.advanced(by: held), Self.piece)
            }
            if count < 0, errno == EINTR { continue }
            let reason = errno
            buffer.removeLast(Self.piece - max(0, count))
            guard count >= 0 else { throw FileSystem.failure("be read", path, reason) }
            hasEnded = count == 0
            return
        }
    }
}
