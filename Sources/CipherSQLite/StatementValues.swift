internal import CCipherEngine
internal import CipherErrors

extension Statement {
    /// Binds the values of `sql`; SQLite copies them.
    ///
    /// The corresponding C functions are `sqlite3_bind_int64` and related ones.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISUSE` if the numbers of values and parameters differ.
    package func bind(valuesOf sql: SQL) throws {
        let expected = sqlite3_bind_parameter_count(handle)
        var index: Int32 = 0
        for position in sql.pieces.indices {
            let result: Int32
            switch sql.pieces[position] {
            case .literal, .text, .name, .refusal: continue
            case .parameter(let value), .argument(let value): result = bind(value, at: index + 1)
            case .date(let date):
                guard let value = connection.columnForms.value(date) else { throw misuse(ColumnForms.beyondText) }
                result = bind(value, at: index + 1)
            case .uuid(let uuid): result = bind(connection.columnForms.value(uuid), at: index + 1)
            }
            index += 1
            guard result == SQLITE_OK else {
                throw index > expected ? otherCount(sql, expected) : connection.error(result, sql: self.sql)
            }
        }
        guard index == expected else { throw otherCount(sql, expected) }
    }

    private func otherCount(_ sql: SQL, _ expected: Int32) -> DatabaseError {
        misuse("the number of values (\(sql.values.count)) differs from the number of parameters (\(expected))")
    }

    private func misuse(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: DatabaseError.misuse, message: message, sql: sql, path: connection.path)
    }

    /// Binds one parameter; the first has index 1.
    ///
    /// The 64-bit calls report a value that is too long; a conversion to Int32 would trap.
    private func bind(_ value: Value, at index: Int32) -> Int32 {
        switch value {
        case .null: sqlite3_bind_null(handle, index)
        case .integer(let integer): sqlite3_bind_int64(handle, index, integer)
        case .real(let real): sqlite3_bind_double(handle, index, real)
        case .text(let text):
            text.withBytes { bytes in
                bytes.withMemoryRebound(to: CChar.self) { characters in
                    // An empty string's pointer may be nil, which would bind NULL.
                    guard let start = characters.baseAddress else {
                        return sqlite3_bind_text(handle, index, "", 0, cs_transient_destructor())
                    }
                    return sqlite3_bind_text64(
                        handle, index, start, UInt64(characters.count), cs_transient_destructor(),
                        UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let blob):
            blob.withUnsafeBytes { bytes in
                guard let start = bytes.baseAddress, !bytes.isEmpty else {
                    return sqlite3_bind_zeroblob(handle, index, 0)
                }
                return sqlite3_bind_blob64(
                    handle, index, start, UInt64(bytes.count), cs_transient_destructor())
            }
        }
    }
}

extension String {
    /// Lends the UTF-8 bytes, which a bridged string on Apple platforms does not store contiguously.
    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result {
        try utf8.withContiguousStorageIfAvailable(body) ?? ContiguousArray(utf8).withUnsafeBufferPointer(body)
    }
}
