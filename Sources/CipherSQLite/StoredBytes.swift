internal import CCipherEngine

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The bytes of one text or blob as they are stored, read piece by piece: its row is never put together in memory.
package final class StoredBytes {
    private let handle: OpaquePointer
    private let connection: Connection

    /// How many bytes there are.
    package let count: Int

    /// Opens a value for reading; `nil` if SQLite cannot lend it so: it is no text or blob, it is the default of a
    /// column that was added later, or its table has generated columns or no rowid.
    ///
    /// The corresponding C function is `sqlite3_blob_open`.
    ///
    /// - Throws: ``DatabaseError`` where the value cannot be read.
    package init?(table: SchemaName, column: SchemaName, rowid: Int64, of connection: Connection) throws {
        var opened: OpaquePointer?
        let result = table.withCString { table in
            column.withCString { sqlite3_blob_open(connection.handle, "main", table, $0, rowid, 0, &opened) }
        }
        guard result == SQLITE_OK, let opened else {
            guard result & 0xff == SQLITE_ERROR else { throw connection.error(result) }
            return nil
        }
        handle = opened
        self.connection = connection
        count = Int(sqlite3_blob_bytes(opened))
    }

    deinit { sqlite3_blob_close(handle) }

    /// The corresponding C function is `sqlite3_blob_read`.
    private func read(_ count: Int, at offset: Int, into buffer: UnsafeMutableRawPointer) throws {
        let result = sqlite3_blob_read(handle, buffer, Int32(count), Int32(offset))
        guard result == SQLITE_OK else { throw connection.error(result) }
    }

    /// Whether two values have the same bytes.
    ///
    /// - Parameter progress: Called after each piece with its size, in bytes; throws to end the comparison.
    /// - Throws: ``DatabaseError``, and what `progress` throws.
    package func equals(_ other: StoredBytes, progress: (Int) throws -> Void) throws -> Bool {
        guard count == other.count else { return false }
        let length = 1 << 20
        let mine = UnsafeMutableRawPointer.allocate(byteCount: length, alignment: 16)
        let theirs = UnsafeMutableRawPointer.allocate(byteCount: length, alignment: 16)
        defer {
            mine.deallocate()
            theirs.deallocate()
        }
        for offset in stride(from: 0, to: count, by: length) {
            let size = min(length, count - offset)
            try read(size, at: offset, into: mine)
            try other.read(size, at: offset, into: theirs)
            guard memcmp(mine, theirs, size) == 0 else { return false }
            try progress(size)
        }
        return true
    }
}
