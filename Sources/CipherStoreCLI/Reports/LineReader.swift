internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// Reads a file or standard input piece by piece, and splits it at a separator byte.
///
/// It holds one piece and one unfinished line, however long the file is.
struct LineReader: ~Copyable {
    private let descriptor: Int32
    private let path: String
    private let isOwned: Bool
    /// Whether the input is a file that can be read again from its beginning.
    let isRegularFile: Bool
    private var buffer: [UInt8] = []
    private var start = 0
    private var hasEnded = false
    /// Whether the line that was returned last ended with the separator.
    private(set) var wasWhole = true

    private static let piece = 256 << 10

    /// Opens a file, or standard input for `-`.
    ///
    /// - Throws: ``StoreError`` if the file cannot be read, with the code `notAFile` for a device other than a terminal:
    ///   most devices never end.
    init(_ path: String) throws {
        let isOwned = path != "-"
        let descriptor = isOwned ? path.withSystemPath { open($0, O_RDONLY | O_CLOEXEC | O_NOCTTY) } : 0
        guard descriptor >= 0 else { throw FileSystem.failure("be read", path, needs: .read) }
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        guard isKnown, Self.mayEnd(status, descriptor) else {
            if isOwned { close(descriptor) }
            throw StoreError(
                .notAFile, path: path, "this is a device", advice: "pass a file, a pipe or standard input",
                changed: .nothing)
        }
        (self.path, self.isOwned, self.descriptor) = (path, isOwned, descriptor)
        isRegularFile = isOwned && status.st_mode & S_IFMT == S_IFREG
    }

    private static func mayEnd(_ status: stat, _ descriptor: Int32) -> Bool {
        guard [S_IFCHR, S_IFBLK].contains(status.st_mode & S_IFMT) else { return true }
        var null = stat()
        return isatty(descriptor) == 1 || stat("/dev/null", &null) == 0 && null.st_rdev == status.st_rdev
    }

    /// Returns the error for a file that is neither a list nor a report.
    func isOther(_ reason: String) -> StoreError {
        StoreError(
            .notAFile, path: path, "this file is neither a list of files nor a fleet report: \(reason)",
            advice: "pass a list with one file name per line, or a report that was created with --report")
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
    /// - Parameter isCancelled: Ends the wait for more input.
    /// - Throws: ``StoreError`` if reading fails, with the code `notAFile` if a line is longer than `longest`.
    mutating func next(
        separator: UInt8, longest: Int, unless isCancelled: (() -> Bool)? = nil
    ) throws -> ArraySlice<UInt8>? {
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
                throw isOther("one of its lines is longer than \(longest) bytes")
            }
            looked = unfinished
            guard waitForInput(unless: isCancelled) else { return nil }
            try fill()
        }
    }

    /// Waits until there is input, or until the caller no longer wants any; the program that writes it may never
    /// continue.
    private func waitForInput(unless isCancelled: (() -> Bool)?) -> Bool {
        guard let isCancelled else { return true }
        var input = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while !isCancelled() {
            if poll(&input, 1, 200) > 0 { return true }
        }
        return false
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
