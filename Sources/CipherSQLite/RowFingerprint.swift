internal import CCipherEngine

extension Statement {
    /// A number for some columns of the current row, by storage class and bytes: equal values have equal ones.
    ///
    /// It holds within one process. Values of one database file alone may be compared by it, for text counts in the
    /// encoding of the database.
    package func fingerprint(of columns: [Int32]) -> UInt64 {
        var hasher = Hasher()
        for column in columns {
            let cell = sqlite3_column_value(handle, column)
            let type = sqlite3_value_type(cell)
            hasher.combine(type)
            switch type {
            case SQLITE_INTEGER: hasher.combine(sqlite3_value_int64(cell))
            case SQLITE_FLOAT: hasher.combine(sqlite3_value_double(cell).bitPattern)
            case SQLITE_NULL: break
            default:
                // The blob first keeps text in its own encoding.
                let start = sqlite3_value_blob(cell)
                let count = sqlite3_value_bytes(cell)
                hasher.combine(count)
                hasher.combine(bytes: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(count)))
            }
        }
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }

    /// Whether a column of the current row is NULL.
    package func isNull(_ column: Int32) -> Bool {
        sqlite3_value_type(sqlite3_column_value(handle, column)) == SQLITE_NULL
    }
}
