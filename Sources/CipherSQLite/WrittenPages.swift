internal import CCipherEngine

/// A record of what SQLite wrote to a database file through one connection, so that it can be checked by reading the
/// file.
///
/// A disk may acknowledge a write and lose it, and SQLite never checks: it continues with the pages in its cache.
/// Each written page is recorded as a fingerprint of four bytes. Source: SQLite, "The SQLite OS Interface or VFS": a
/// file points to a table of its methods, and a replacement table can pass every call on.
package final class WrittenPages {
    /// The structure that SQLite uses, followed by a reference to this object.
    private struct Methods {
        var methods: sqlite3_io_methods
        let original: UnsafePointer<sqlite3_io_methods>
        let owner: Unmanaged<WrittenPages>
    }

    private let file: UnsafeMutablePointer<sqlite3_file>
    private let original: UnsafePointer<sqlite3_io_methods>
    private let methods: UnsafeMutablePointer<Methods>
    /// The file's connection, while its writes are recorded.
    private var connection: Connection?
    private var pageSize = 0
    /// The fingerprints by page number, from 0; 0 for a page that was not written.
    private var fingerprints: [UInt32] = []

    /// Begins to record what the connection writes to its main database, except in WAL mode.
    ///
    /// - Throws: ``DatabaseError`` if the connection has no file.
    package init(of connection: Connection) throws {
        file = try connection.mainFile()
        original = file.pointee.pMethods
        self.connection = connection
        methods = .allocate(capacity: 1)
        var replaced = original.pointee
        replaced.xWrite = { file, content, count, offset in
            WrittenPages.of(file) { $0.write(content, count: count, at: offset) }
        }
        replaced.xTruncate = { file, size in WrittenPages.of(file) { $0.truncate(to: size) } }
        methods.initialize(to: Methods(methods: replaced, original: original, owner: .passUnretained(self)))
        file.pointee.pMethods = UnsafeRawPointer(methods).assumingMemoryBound(to: sqlite3_io_methods.self)
    }

    deinit {
        stop()
        methods.deallocate()
    }

    /// Restores the file's own methods; the connection must still be open.
    package func stop() {
        guard connection != nil else { return }
        file.pointee.pMethods = original
        connection = nil
    }

    /// Returns the number, from 1, of the first page whose content in the file differs from the last write; `nil` if
    /// there is no such page.
    ///
    /// - Throws: ``DatabaseError`` if the file cannot be read.
    package func firstLost(in file: some ReadableFile) throws -> Int? {
        try fingerprints.indices.first { page in
            guard fingerprints[page] != 0 else { return false }
            let bytes = try file.read(at: Int64(page) * Int64(pageSize), count: pageSize)
            return bytes.withUnsafeBytes { Self.fingerprint($0) } != fingerprints[page]
        }.map { $0 + 1 }
    }

    private static func of(_ file: UnsafeMutablePointer<sqlite3_file>?, _ body: (WrittenPages) -> Int32) -> Int32 {
        guard let methods = file?.pointee.pMethods else { return SQLITE_IOERR }
        return body(
            UnsafeRawPointer(methods).assumingMemoryBound(to: Methods.self).pointee.owner.takeUnretainedValue())
    }

    private func write(_ content: UnsafeRawPointer?, count: Int32, at offset: Int64) -> Int32 {
        let result = original.pointee.xWrite(file, content, count, offset)
        if result == SQLITE_OK { remember(UnsafeRawBufferPointer(start: content, count: Int(count)), at: offset) }
        return result
    }

    private func remember(_ content: UnsafeRawBufferPointer, at offset: Int64) {
        if content.count != pageSize {
            // VACUUM has changed the page size of the file, and rewrites the whole file.
            pageSize = content.count
            fingerprints = []
        }
        let page = Int(offset) / pageSize
        if page >= fingerprints.count {
            fingerprints += repeatElement(0, count: page + 1 - fingerprints.count)
        }
        fingerprints[page] = Self.fingerprint(content)
    }

    private func truncate(to size: Int64) -> Int32 {
        let result = original.pointee.xTruncate(file, size)
        if result == SQLITE_OK, pageSize > 0 {
            fingerprints.removeLast(max(0, fingerprints.count - (Int(size) + pageSize - 1) / pageSize))
        }
        return result
    }

    /// Returns a fingerprint, which is never 0.
    private static func fingerprint(_ content: UnsafeRawBufferPointer) -> UInt32 {
        var hasher = Hasher()
        hasher.combine(bytes: content)
        return max(1, UInt32(truncatingIfNeeded: hasher.finalize()))
    }
}
