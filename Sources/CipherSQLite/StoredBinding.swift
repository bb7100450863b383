internal import CCipherEngine

/// Binding of values that are stored unchanged: text is bound as bytes in an encoding, valid or not.
extension Statement {
    /// An encoding of text, with SQLite's number for it.
    package enum TextForm: UInt8, Sendable {
        case utf8 = 1
        case utf16LittleEndian = 2
        case utf16BigEndian = 3
    }

    /// Binds NULL; the first parameter has index 1.
    package func bindNull(at index: Int32) throws { try check(sqlite3_bind_null(handle, index)) }

    /// Binds an integer.
    package func bind(_ number: Int64, at index: Int32) throws { try check(sqlite3_bind_int64(handle, index, number)) }

    /// Binds a real number.
    package func bind(_ number: Double, at index: Int32) throws {
        try check(sqlite3_bind_double(handle, index, number))
    }

    /// Binds text that must stay in memory until the statement has been stepped.
    ///
    /// SQLite drops a byte order mark at the beginning of UTF-16, so text that begins with one gets another.
    package func bind(text bytes: UnsafeRawBufferPointer, _ form: TextForm, at index: Int32) throws {
        guard let start = bytes.baseAddress, !bytes.isEmpty else {
            return try check(sqlite3_bind_text(handle, index, "", 0, nil))
        }
        if form != .utf8, bytes.count > 1, Set(bytes.prefix(2)) == [0xfe, 0xff] {
            let marked = (form == .utf16LittleEndian ? [0xff, 0xfe] : [0xfe, 0xff]) + Array(bytes)
            return try marked.withUnsafeBytes { marked in
                // SQLite removes the mark, and thereby copies the text, in this call.
                try check(
                    sqlite3_bind_text64(
                        handle, index, marked.baseAddress?.assumingMemoryBound(to: CChar.self), UInt64(marked.count),
                        cs_transient_destructor(), form.rawValue))
            }
        }
        try check(
            sqlite3_bind_text64(
                handle, index, start.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), nil, form.rawValue))
    }

    /// Binds a blob that must stay in memory until the statement has been stepped.
    package func bind(blob bytes: UnsafeRawBufferPointer, at index: Int32) throws {
        guard let start = bytes.baseAddress, !bytes.isEmpty else {
            return try check(sqlite3_bind_zeroblob(handle, index, 0))
        }
        try check(sqlite3_bind_blob64(handle, index, start, UInt64(bytes.count), nil))
    }

    private func check(_ result: Int32) throws {
        guard result == SQLITE_OK else { throw connection.error(result, sql: sql) }
    }

    /// Makes the statement ready to run again, with the same bound values.
    package func rewind() { _ = sqlite3_reset(handle) }
}
