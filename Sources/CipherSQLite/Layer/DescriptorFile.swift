internal import CCipherEngine
internal import CCipherSystem
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// A file that is read and written through an open descriptor, even if another file now has its name.
///
/// It has no position and takes no lock, so several threads may use it.
package final class DescriptorFile: Sendable {
    private let descriptor: Int32
    private let closesDescriptor: Bool
    private let path: String
    /// Whether the system is to begin to write bytes to the disk as soon as this object has written them.
    private let writesEarly: Bool

    /// Creates a file whose descriptor the caller opened and closes.
    ///
    /// - Parameters:
    ///   - descriptor: A file descriptor that is open for reading and writing as long as this object is used.
    ///   - path: The path that errors name.
    package convenience init(descriptor: Int32, path: String) {
        self.init(descriptor: descriptor, path: path, closesDescriptor: false)
    }

    init(descriptor: Int32, path: String, closesDescriptor: Bool, writesEarly: Bool = false) {
        self.descriptor = descriptor
        self.path = path
        self.closesDescriptor = closesDescriptor
        self.writesEarly = writesEarly
    }

    /// Returns this file, set so that the system begins to write bytes to the disk as soon as the object writes them.
    ///
    /// If an app commits to other files meanwhile, each of its syncs would otherwise wait for more and more bytes of
    /// this file. Use the result only as long as this object exists.
    package var writingEarly: DescriptorFile {
        DescriptorFile(descriptor: descriptor, path: path, closesDescriptor: false, writesEarly: true)
    }

    deinit {
        if closesDescriptor { _ = systemClose(descriptor) }
    }

    // Extended codes, which Swift does not import. Source: SQLite, "Result and Error Codes".
    package static let readFailure = SQLITE_IOERR | (1 << 8)
    package static let shortRead = SQLITE_IOERR | (2 << 8)
    package static let writeFailure = SQLITE_IOERR | (3 << 8)
    private static let syncFailure = SQLITE_IOERR | (4 << 8)
    private static let truncateFailure = SQLITE_IOERR | (6 << 8)
    private static let statusFailure = SQLITE_IOERR | (7 << 8)

    /// Fills the buffer, with zeros beyond the end of the file, as SQLite requires.
    package func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32 {
        var done = 0
        while done < count {
            let part = pread(descriptor, buffer + done, count - done, off_t(offset) + off_t(done))
            if part < 0, errno == EINTR { continue }
            guard part >= 0 else { return Self.readFailure }
            guard part > 0 else {
                (buffer + done).initializeMemory(as: UInt8.self, repeating: 0, count: count - done)
                return Self.shortRead
            }
            done += part
        }
        return SQLITE_OK
    }

    package func write(_ content: UnsafeRawPointer, count: Int, offset: Int64) -> Int32 {
        var done = 0
        while done < count {
            let part = pwrite(descriptor, content + done, count - done, off_t(offset) + off_t(done))
            if part < 0, errno == EINTR { continue }
            guard part > 0 else {
                return part == 0 || [ENOSPC, EDQUOT, EFBIG].contains(errno) ? SQLITE_FULL : Self.writeFailure
            }
            done += part
        }
        if writesEarly { cs_begin_writing(descriptor, off_t(offset), off_t(count)) }
        return SQLITE_OK
    }

    package func truncate(to size: Int64) -> Int32 {
        var result: Int32
        repeat { result = ftruncate(descriptor, off_t(size)) } while result != 0 && errno == EINTR
        return result == 0 ? SQLITE_OK : Self.truncateFailure
    }

    package func sync() -> Int32 {
        syncToDisk(descriptor) ? SQLITE_OK : Self.syncFailure
    }

    package func getSize(_ size: inout Int64) -> Int32 {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return Self.statusFailure }
        size = Int64(status.st_size)
        return SQLITE_OK
    }

    func check(_ result: Int32, _ message: String) throws {
        guard result == SQLITE_OK else {
            throw DatabaseError(extendedCode: result, message: message, path: path)
        }
    }
}

extension DescriptorFile {
    /// The size in bytes.
    package func size() throws -> Int64 {
        var size: Int64 = 0
        try check(getSize(&size), "the size of the file could not be read")
        return size
    }

    /// Reads exactly as many bytes as requested.
    ///
    /// - Throws: ``DatabaseError`` if reading fails or the file ends first.
    package func fill(_ buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) throws {
        try check(read(into: buffer, count: count, offset: offset), "the file could not be read")
    }
}

/// A file whose bytes can be read, by any means.
package protocol ReadableFile {
    /// Returns up to `count` bytes from `offset`; fewer if the file ends first.
    func read(at offset: Int64, count: Int) throws -> [UInt8]
}

extension DescriptorFile: ReadableFile {
    package func read(at offset: Int64, count: Int) throws -> [UInt8] {
        let available = Int(max(0, min(Int64(count), try size() - offset)))
        guard available > 0 else { return [] }
        return try [UInt8](unsafeUninitializedCapacity: available) { buffer, initialized in
            guard let start = buffer.baseAddress else { return }
            try fill(start, count: available, offset: offset)
            initialized = available
        }
    }
}

private func systemClose(_ descriptor: Int32) -> Int32 { close(descriptor) }
