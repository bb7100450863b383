internal import CCipherEngine
internal import CipherPlatform

/// The stored bytes of one TEXT or BLOB value, read piece by piece, so that its row is never assembled in memory.
package final class StoredBytes {
    private let handle: OpaquePointer
    private let connection: Connection

    /// The number of bytes.
    package let count: Int

    /// Opens a value for reading; returns `nil` if SQLite cannot open it in this way, because it is not text or a blob,
    /// it is the default of a column that was added later, or its table has generated columns or no rowid.
    ///
    /// The corresponding C function is `sqlite3_blob_open`.
    ///
    /// - Throws: ``DatabaseError`` if the value cannot be read.
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

    /// Returns whether two values have the same bytes.
    ///
    /// - Parameter progress: Called after each piece with its size in bytes; it throws to end the comparison.
    /// - Throws: ``DatabaseError``, and any error thrown by `progress`.
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
