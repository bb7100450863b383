internal import CCipherEngine
internal import CipherErrors
internal import CipherPlatform

/// A compiled SQL statement of one connection.
///
/// It is not Sendable, because its connection is not.
package final class Statement {
    package let handle: OpaquePointer
    /// The SQL that was compiled.
    let bytes: [UInt8]
    /// The pieces from which it was compiled, without values; `nil` for a part of a script.
    private let shape: SQL?
    // There is no reference check at each use, because statements are used only through their connection, which
    // outlives them.
    unowned(unsafe) let connection: Connection
    /// The tables that the statement reads and writes; `nil` if SQLite did not report them.
    let access: StatementAccess?
    /// Whether the schema may be different after the statement has run; `false` if that is unknown, as for statements
    /// that the connection itself runs.
    let changesSchema: Bool
    /// Whether the statement queries or sets properties of the database instead of working with rows.
    let isPragma: Bool

    /// Compiles `sql`, which must be one statement.
    ///
    /// The corresponding C function is `sqlite3_prepare_v2`; `sqlite3_prepare_v3` is missing in SQLCipher 3.4.1.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISUSE` if `sql` contains no statement, or a second statement that
    ///   would be ignored.
    package convenience init(_ sql: SQL, on connection: Connection) throws {
        let text = sql.bytes
        if let refusal = sql.refusal {
            throw text.withUnsafeBufferPointer { Self.misuse(refusal, $0, connection) }
        }
        let handle = try text.withUnsafeBufferPointer { bytes in
            let (first, rest) = try Self.compile(bytes, on: connection)
            guard let first else {
                throw Self.misuse("the SQL contains no statement", bytes, connection)
            }
            do {
                guard try rest.isEmpty || !Self.holdsStatement(rest, on: connection) else {
                    throw Self.misuse("the SQL contains more than one statement; use executeScript", bytes, connection)
                }
                try connection.hasCompiled?(text)
            } catch {
                sqlite3_finalize(first)
                throw error
            }
            return first
        }
        self.init(handle: handle, bytes: text, shape: sql.withoutValues, connection: connection)
    }

    private init(handle: OpaquePointer, bytes: [UInt8], shape: SQL?, connection: Connection) {
        self.handle = handle
        self.bytes = bytes
        self.shape = shape
        self.connection = connection
        access = connection.takeCompiledAccess(of: bytes)
        changesSchema = access?.changesSchema ?? false
        isPragma = bytes.starts(with: "PRAGMA ".utf8)
    }

    /// The SQL as text for people to read.
    package var sql: String { String(decoding: bytes, as: UTF8.self) }

    /// Compiles the first statement of a script and returns it with the rest of the script; `nil` if no statement is
    /// left.
    static func first(
        of script: UnsafeBufferPointer<UInt8>, on connection: Connection
    ) throws -> (statement: Statement, rest: UnsafeBufferPointer<UInt8>)? {
        let (handle, rest) = try compile(script, on: connection)
        guard let handle else { return nil }
        let bytes = Array(script.prefix(script.count - rest.count))
        let statement = Statement(handle: handle, bytes: bytes, shape: nil, connection: connection)
        try connection.hasCompiled?(bytes)
        return (statement, rest)
    }

    private static func holdsStatement(_ sql: UnsafeBufferPointer<UInt8>, on connection: Connection) throws -> Bool {
        let access = connection.compiledAccess
        defer { connection.compiledAccess = access }
        let (handle, _) = try compile(sql, on: connection)
        sqlite3_finalize(handle)
        return handle != nil
    }

    /// Compiles the first statement; for an app's closure, in such a way that SQLite treats no name in it as a string.
    private static func compile(
        _ sql: UnsafeBufferPointer<UInt8>, on connection: Connection
    ) throws -> (OpaquePointer?, rest: UnsafeBufferPointer<UInt8>) {
        let (handle, rest) = try prepare(sql, on: connection)
        guard connection.isLent, let handle,
            let names = SQL.quotingNamesOnly(sql.prefix(sql.count - rest.count))
        else { return (handle, rest) }
        sqlite3_finalize(handle)
        do {
            return (try names.withUnsafeBufferPointer { try prepare($0, on: connection).0 }, rest)
        } catch let error as DatabaseError {
            // The statement compiled before, with a name treated as a string.
            throw DatabaseError(
                extendedCode: error.extendedCode,
                message: "\(error.message) (double quotes enclose a name; single quotes enclose text)",
                sql: String(decoding: sql, as: UTF8.self), path: error.path)
        }
    }

    private static func prepare(
        _ sql: UnsafeBufferPointer<UInt8>, on connection: Connection
    ) throws -> (OpaquePointer?, rest: UnsafeBufferPointer<UInt8>) {
        guard let start = sql.baseAddress, !sql.isEmpty else { return (nil, sql) }
        // SQLite would silently stop at the NUL.
        guard memchr(start, 0, sql.count) == nil else {
            throw misuse("the SQL contains a NUL character", sql, connection)
        }
        var handle: OpaquePointer?
        var used = 0
        connection.isCompiling = true
        connection.compiledAccess = connection.isLent ? StatementAccess() : nil
        defer { connection.isCompiling = false }
        let result = sql.withMemoryRebound(to: CChar.self) { characters in
            var tail: UnsafePointer<CChar>?
            let result = sqlite3_prepare_v2(
                connection.handle, characters.baseAddress, Int32(clamping: characters.count), &handle, &tail)
            if let start = characters.baseAddress, let tail { used = tail - start }
            return result
        }
        guard result == SQLITE_OK else { throw connection.error(result, sql: String(decoding: sql, as: UTF8.self)) }
        return (handle, UnsafeBufferPointer(rebasing: sql[used...]))
    }

    private static func misuse(
        _ message: String, _ sql: UnsafeBufferPointer<UInt8>, _ connection: Connection
    ) -> DatabaseError {
        DatabaseError(
            extendedCode: DatabaseError.misuse, message: message, sql: String(decoding: sql, as: UTF8.self),
            path: connection.path)
    }

    deinit {
        sqlite3_finalize(handle)
    }

    /// Returns whether the statement was compiled from this SQL.
    func has(_ other: SQL) -> Bool {
        // In a loop, the SQL comes from the same line of the program.
        if shape?.isMade(ofThePiecesOf: other) == true { return true }
        return bytes.count == other.length && bytes.withUnsafeBufferPointer(other.isSpelled)
    }

    package var columnCount: Int { Int(sqlite3_column_count(handle)) }
    package var isReadOnly: Bool { sqlite3_stmt_readonly(handle) != 0 }

    package func columnName(_ index: Int) -> String {
        sqlite3_column_name(handle, Int32(index)).map { String(cString: $0) } ?? ""
    }

    /// Runs to the next row, and returns whether there is one.
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

    /// Runs the statement to completion if it writes, after a caller has read its first row.
    ///
    /// Outside a transaction, the statement is committed at its end. A failed commit becomes an error only here,
    /// because the result of `sqlite3_reset` is not used.
    func finish() throws {
        guard !isReadOnly else { return }
        while sqlite3_stmt_busy(handle) != 0, try step() {}
    }

    /// Makes the statement ready to run again, and clears its values.
    package func reset() {
        // The result repeats the failure of the last step, which was reported by that step.
        _ = sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    /// Returns a column of the current row as an integer.
    package func integer(_ index: Int32) -> Int64 { sqlite3_column_int64(handle, index) }

    /// Returns whether a column of the current row of this statement is identical to that of another: the storage
    /// class, and the bytes in the encoding of the database.
    ///
    /// - Parameter size: Increased by the number of bytes that were compared.
    package func column(_ index: Int32, equals other: Statement, _ otherIndex: Int32, size: inout Int64) -> Bool {
        // The values are looked up once for type and bytes, as in ``Row``, because this runs for each column of each
        // row of an upgrade.
        let mine = sqlite3_column_value(handle, index)
        let theirs = sqlite3_column_value(other.handle, otherIndex)
        let type = sqlite3_value_type(mine)
        guard type == sqlite3_value_type(theirs) else { return false }
        size += 8
        switch type {
        case SQLITE_INTEGER: return sqlite3_value_int64(mine) == sqlite3_value_int64(theirs)
        case SQLITE_FLOAT: return sqlite3_value_double(mine).bitPattern == sqlite3_value_double(theirs).bitPattern
        case SQLITE_NULL: return true
        default:
            // Reading the value as a blob first preserves the text's own encoding: nothing is converted, and invalid
            // text stays as it is.
            let left = sqlite3_value_blob(mine)
            let right = sqlite3_value_blob(theirs)
            let count = sqlite3_value_bytes(mine)
            guard count == sqlite3_value_bytes(theirs) else { return false }
            guard count > 0, let left, let right else { return count == 0 }
            size += Int64(count)
            return memcmp(left, right, Int(count)) == 0
        }
    }
}
