internal import CCipherEngine

/// The class in which SQLite stores a value.
///
/// Source: SQLite, "Datatypes In SQLite", section 2.
package enum StorageClass: Sendable { case null, integer, real, text, blob }

extension Statement {
    /// Returns the storage class of a column of the current row.
    package func storageClass(_ column: Int32) -> StorageClass {
        switch sqlite3_value_type(sqlite3_column_value(handle, column)) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .real
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    /// Returns whether a column of the current row is NULL.
    package func isNull(_ column: Int32) -> Bool { storageClass(column) == .null }

    /// Returns a column of the current row as a floating-point number.
    package func real(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }

    /// Returns the bytes of a text, in the encoding of the database, or of a blob in a column of the current row.
    ///
    /// They are valid until the next step.
    package func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let value = sqlite3_column_value(handle, column)
        // Reading the value as a blob first preserves the text's own encoding.
        let start = sqlite3_value_blob(value)
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(value)))
    }
}
