internal import CSQLCipher
internal import CSQLCipherShims

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A compiled SQL statement of one connection.
///
/// Not Sendable, as its connection is not.
package final class Statement {
    package let handle: OpaquePointer
    package let sql: String
    private unowned let connection: Connection

    /// Compiles `sql`, which must be one statement.
    ///
    /// The corresponding C function is `sqlite3_prepare_v2`; `sqlite3_prepare_v3` is missing in SQLCipher 3.4.1.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISUSE` where there is none, or where a second one would be ignored.
    package convenience init(_ sql: String, on connection: Connection) throws {
        var text = sql
        let handle = try text.withUTF8 { bytes in
            let (first, rest) = try Self.compile(bytes, on: connection)
            guard let first else {
                throw Self.misuse("there is no statement in the SQL", sql, connection)
            }
            do {
                guard try rest.isEmpty || !Self.holdsStatement(rest, on: connection) else {
                    throw Self.misuse("there is more than one statement; use executeScript", sql, connection)
                }
            } catch {
                sqlite3_finalize(first)
                throw error
            }
            return first
        }
        self.init(handle: handle, sql: sql, connection: connection)
    }

    private init(handle: OpaquePointer, sql: String, connection: Connection) {
        self.handle = handle
        self.sql = sql
        self.connection = connection
    }

    /// Compiles the first statement of a script, and gives the rest of the script; `nil` where none is left.
    static func first(
        of script: UnsafeBufferPointer<UInt8>, on connection: Connection
    ) throws -> (statement: Statement, rest: UnsafeBufferPointer<UInt8>)? {
        let (handle, rest) = try compile(script, on: connection)
        guard let handle else { return nil }
        let sql = String(decoding: script.prefix(script.count - rest.count), as: UTF8.self)
        return (Statement(handle: handle, sql: sql, connection: connection), rest)
    }

    private static func holdsStatement(_ sql: UnsafeBufferPointer<UInt8>, on connection: Connection) throws -> Bool {
        let (handle, _) = try compile(sql, on: connection)
        sqlite3_finalize(handle)
        return handle != nil
    }

    private static func compile(
        _ sql: UnsafeBufferPointer<UInt8>, on connection: Connection
    ) throws -> (OpaquePointer?, rest: UnsafeBufferPointer<UInt8>) {
        guard !sql.isEmpty else { return (nil, sql) }
        // SQLite would stop there without a word.
        guard !sql.contains(0) else {
            throw misuse("there is a NUL character in the SQL", String(decoding: sql, as: UTF8.self), connection)
        }
        var handle: OpaquePointer?
        var used = 0
        let result = connection.withHandle { database in
            sql.withMemoryRebound(to: CChar.self) { characters in
                var tail: UnsafePointer<CChar>?
                let result = sqlite3_prepare_v2(
                    database, characters.baseAddress, Int32(clamping: characters.count), &handle, &tail)
                if let start = characters.baseAddress, let tail { used = tail - start }
                return result
            }
        }
        guard result == SQLITE_OK else { throw connection.error(result, sql: String(decoding: sql, as: UTF8.self)) }
        return (handle, UnsafeBufferPointer(rebasing: sql[used...]))
    }

    private static func misuse(_ message: String, _ sql: String, _ connection: Connection) -> DatabaseError {
        DatabaseError(extendedCode: DatabaseError.misuse, message: message, sql: sql, path: connection.path)
    }

    deinit {
        sqlite3_finalize(handle)
    }

    /// Whether its text is this one, byte by byte.
    func hasText(_ text: String) -> Bool {
        var own = sql
        var other = text
        return own.withUTF8 { own in
            other.withUTF8 { other in
                guard own.count == other.count, let left = own.baseAddress, let right = other.baseAddress else {
                    return own.isEmpty && other.isEmpty
                }
                return memcmp(left, right, own.count) == 0
            }
        }
    }

    package var columnCount: Int { Int(sqlite3_column_count(handle)) }
    package var isReadOnly: Bool { sqlite3_stmt_readonly(handle) != 0 }

    package func columnName(_ index: Int) -> String {
        sqlite3_column_name(handle, Int32(index)).map { String(cString: $0) } ?? ""
    }

    /// Binds all parameters.
    ///
    /// - Throws: ``DatabaseError`` with `SQLITE_MISUSE` where the counts differ.
    package func bind(_ values: [Value]) throws {
        let expected = Int(sqlite3_bind_parameter_count(handle))
        guard expected == values.count else {
            throw DatabaseError(
                extendedCode: DatabaseError.misuse,
                message: "the statement takes \(expected) values and \(values.count) were given", sql: sql,
                path: connection.path)
        }
        for (index, value) in values.enumerated() {
            try bind(value, at: Int32(index + 1))
        }
    }

    /// Binds one parameter; the first has index 1.
    package func bind(_ value: Value, at index: Int32) throws {
        let result =
            switch value {
            case .null: sqlite3_bind_null(handle, index)
            case .integer(let integer): sqlite3_bind_int64(handle, index, integer)
            case .real(let real): sqlite3_bind_double(handle, index, real)
            case .text(var text):
                text.withUTF8 { bytes in
                    bytes.withMemoryRebound(to: CChar.self) { characters in
                        // An empty string's pointer may be nil, which would bind NULL.
                        if let start = characters.baseAddress {
                            // The 64-bit call reports a text that is too long, where an Int32 would trap.
                            sqlite3_bind_text64(
                                handle, index, start, UInt64(characters.count), cs_transient_destructor(),
                                UInt8(SQLITE_UTF8))
                        } else {
                            sqlite3_bind_text(handle, index, "", 0, cs_transient_destructor())
                        }
                    }
                }
            case .blob(let blob):
                blob.withUnsafeBytes { bytes in
                    if let start = bytes.baseAddress, !bytes.isEmpty {
                        sqlite3_bind_blob64(
                            handle, index, start, UInt64(bytes.count), cs_transient_destructor())
                    } else {
                        sqlite3_bind_zeroblob(handle, index, 0)
                    }
                }
            }
        guard result == SQLITE_OK else { throw connection.error(result, sql: sql) }
    }

    /// Runs to the next row.
    ///
    /// Returns whether there is one.
    ///
    /// The corresponding C function is `sqlite3_step`.
    @discardableResult
    package func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let result: throw connection.error(result, sql: sql)
        }
    }

    /// Makes the statement ready to run again, and forgets its values.
    package func reset() {
        // The result repeats the failure of the last step, which was reported there.
        _ = sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    /// A column of the current row as an integer.
    package func integer(_ index: Int32) -> Int64 { sqlite3_column_int64(handle, index) }

    /// Whether a column of the current row of this statement and of another are equal to the bit: storage class, and
    /// bytes in the encoding of the database.
    ///
    /// - Parameter size: Grows by the bytes that were compared.
    package func column(_ index: Int32, equals other: Statement, _ otherIndex: Int32, size: inout Int64) -> Bool {
        let type = sqlite3_column_type(handle, index)
        guard type == sqlite3_column_type(other.handle, otherIndex) else { return false }
        size += 8
        switch type {
        case SQLITE_INTEGER:
            return sqlite3_column_int64(handle, index) == sqlite3_column_int64(other.handle, otherIndex)
        case SQLITE_FLOAT:
            return sqlite3_column_double(handle, index).bitPattern
                == sqlite3_column_double(other.handle, otherIndex).bitPattern
        case SQLITE_NULL:
            return true
        default:
            // Asking for a blob first keeps text in its own encoding: nothing is converted, invalid text stays as it is.
            let left = sqlite3_column_blob(handle, index)
            let right = sqlite3_column_blob(other.handle, otherIndex)
            let count = sqlite3_column_bytes(handle, index)
            guard count == sqlite3_column_bytes(other.handle, otherIndex) else { return false }
            guard count > 0, let left, let right else { return count == 0 }
            size += Int64(count)
            return memcmp(left, right, Int(count)) == 0
        }
    }
}
