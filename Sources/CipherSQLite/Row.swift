internal import CCipherEngine
public import CipherErrors

/// The current row of a running query, lent to a closure.
///
/// Copy the values that must outlive the closure.
public struct Row: ~Copyable {
    let statement: Statement

    /// Creates a view of a statement's current row; each step changes the values in it.
    package init(of statement: Statement) {
        self.statement = statement
    }

    /// The number of columns.
    public var count: Int { statement.columnCount }

    /// Returns the name of a column; the first column has index 0.
    public func name(at index: Int) -> String { statement.columnName(index) }

    /// Returns the value of a column; the first column has index 0.
    ///
    /// The corresponding C functions are `sqlite3_column_value`, `sqlite3_value_type` and related ones.
    public func value(at index: Int) -> Value {
        let cell = cell(at: index)
        return switch sqlite3_value_type(cell) {
        case SQLITE_INTEGER: .integer(sqlite3_value_int64(cell))
        case SQLITE_FLOAT: .real(sqlite3_value_double(cell))
        case SQLITE_TEXT: .text(Self.text(of: cell) ?? "")
        case SQLITE_BLOB: .blob(withBytes(at: index) { [UInt8]($0) })
        default: .null
        }
    }

    /// Returns whether a column holds text, which stays in the encoding of the database.
    package func isText(at index: Int) -> Bool { sqlite3_value_type(cell(at: index)) == SQLITE_TEXT }

    /// Returns whether a column is NULL.
    public func isNull(at index: Int) -> Bool { sqlite3_value_type(cell(at: index)) == SQLITE_NULL }

    /// Returns a column as a Swift value; the first column has index 0.
    ///
    /// - Throws: ``DatabaseError`` with `SQLITE_MISMATCH` if the storage class does not fit or a number is out of
    ///   range. Nothing is truncated or guessed.
    @inlinable
    public func get<Column: ColumnReadable>(_ type: Column.Type = Column.self, at index: Int) throws -> Column {
        try Column.read(from: self, at: index)
    }

    /// Returns a column as a Swift value, by its name.
    ///
    /// An exact match takes precedence over one that differs in case.
    ///
    /// - Throws: ``DatabaseError`` with `SQLITE_MISMATCH`, as ``get(_:at:)`` does, and if there is no column with that
    ///   name.
    public func get<Column: ColumnReadable>(_ type: Column.Type = Column.self, named name: String) throws -> Column {
        try get(type, at: index(of: name))
    }

    private func index(of name: String) throws -> Int {
        var names: [String] = []
        for index in 0..<count { names.append(self.name(at: index)) }
        if let index = names.firstIndex(of: name) { return index }
        let folded = TableAccess.folded(name)
        guard let index = names.firstIndex(where: { TableAccess.folded($0) == folded }) else {
            throw DatabaseError(
                extendedCode: DatabaseError.mismatch,
                message: "the query has no column \(name); its columns are \(names.joined(separator: ", "))",
                sql: statement.sql)
        }
        return index
    }

    /// Lends the bytes of a text or blob column; the bytes of text are UTF-8 in every database.
    public func withBytes<Result>(at index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        let cell = cell(at: index)
        // Without this, the bytes in a UTF-16 database would depend on whether the column was read as text before.
        if sqlite3_value_type(cell) == SQLITE_TEXT { _ = sqlite3_value_text(cell) }
        let start = sqlite3_value_blob(cell)
        let count = sqlite3_value_bytes(cell)
        return try body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(count)))
    }

    /// Returns whether a text column contains an ASCII word, in any case.
    ///
    /// The SQL operator `LIKE` would call the function with that name, which may be the app's own.
    package func holds(_ word: StaticString, at index: Int) -> Bool { withBytes(at: index) { $0.containsWord(word) } }

    /// Returns a column's value in the row, looked up once for both its type and its bytes.
    ///
    /// Source: SQLite, "Protected And Unprotected SQL Values": for a connection without a mutex there is no difference.
    private func cell(at index: Int) -> OpaquePointer? { sqlite3_column_value(statement.handle, Int32(index)) }

    /// Returns text by its explicit length, because text may contain NUL characters.
    private static func text(of cell: OpaquePointer?) -> String? {
        // The text is read before the bytes: the first call may convert from UTF-16, and the second then counts the
        // result.
        guard let start = sqlite3_value_text(cell) else { return nil }
        let count = sqlite3_value_bytes(cell)
        return String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// Returns an INTEGER column; `nil` for any other column.
    @usableFromInline func integer(at index: Int) -> Int64? {
        let cell = cell(at: index)
        return sqlite3_value_type(cell) == SQLITE_INTEGER ? sqlite3_value_int64(cell) : nil
    }

    /// Returns a TEXT column; `nil` for any other column.
    func text(at index: Int) -> String? {
        let cell = cell(at: index)
        return sqlite3_value_type(cell) == SQLITE_TEXT ? Self.text(of: cell) : nil
    }

    /// Returns the bytes of a TEXT column in UTF-8, valid or not; `nil` for any other column.
    func textBytes(at index: Int) -> [UInt8]? {
        let cell = cell(at: index)
        // The text is read before the bytes, as for a `String`.
        guard sqlite3_value_type(cell) == SQLITE_TEXT, let start = sqlite3_value_text(cell) else { return nil }
        return Array(UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(cell))))
    }

    @usableFromInline
    func mismatch(at index: Int, wanted: Any.Type) -> DatabaseError {
        let found =
            switch sqlite3_column_type(statement.handle, Int32(index)) {
            case SQLITE_INTEGER: "INTEGER"
            case SQLITE_FLOAT: "REAL"
            case SQLITE_TEXT: "TEXT"
            case SQLITE_BLOB: "BLOB"
            default: "NULL"
            }
        return DatabaseError(
            extendedCode: DatabaseError.mismatch,
            message: "column \(index) (\(name(at: index))) is \(found) and cannot be read as \(wanted)",
            sql: statement.sql)
    }
}

/// A type that can be read from a column of a row.
public protocol ColumnReadable {
    /// Reads a column, or throws if its value does not fit; the first column has index 0.
    static func read(from row: borrowing Row, at index: Int) throws -> Self
}

extension ColumnReadable where Self: FixedWidthInteger {
    /// Reads an INTEGER column whose value fits the type.
    ///
    /// A column of type TEXT or VARCHAR stores a number as text, which is not read as a number.
    @inlinable
    public static func read(from row: borrowing Row, at index: Int) throws -> Self {
        guard let integer = row.integer(at: index), let value = Self(exactly: integer) else {
            throw row.mismatch(at: index, wanted: Self.self)
        }
        return value
    }
}

extension Int: ColumnReadable {}
extension Int8: ColumnReadable {}
extension Int16: ColumnReadable {}
extension Int32: ColumnReadable {}
extension Int64: ColumnReadable {}
extension UInt: ColumnReadable {}
extension UInt8: ColumnReadable {}
extension UInt16: ColumnReadable {}
extension UInt32: ColumnReadable {}
extension UInt64: ColumnReadable {}

extension Bool: ColumnReadable {
    /// Reads an INTEGER column: 0 is false, other values are true.
    public static func read(from row: borrowing Row, at index: Int) throws -> Bool {
        guard let integer = row.integer(at: index) else {
            throw row.mismatch(at: index, wanted: Bool.self)
        }
        return integer != 0
    }
}

extension Double: ColumnReadable {
    /// Reads a REAL or INTEGER column.
    ///
    /// A column of type TEXT or VARCHAR stores a number as text, which is not read as a number.
    public static func read(from row: borrowing Row, at index: Int) throws -> Double {
        switch row.value(at: index) {
        case .real(let real): return real
        case .integer(let integer): return Double(integer)
        default: throw row.mismatch(at: index, wanted: Double.self)
        }
    }
}

extension Float: ColumnReadable {
    /// Reads a REAL or INTEGER column.
    public static func read(from row: borrowing Row, at index: Int) throws -> Float {
        Float(try Double.read(from: row, at: index))
    }
}

extension String: ColumnReadable {
    /// Reads a TEXT column.
    public static func read(from row: borrowing Row, at index: Int) throws -> String {
        guard let text = row.text(at: index) else { throw row.mismatch(at: index, wanted: String.self) }
        return text
    }
}

extension [UInt8]: ColumnReadable {
    /// Reads a BLOB or TEXT column.
    public static func read(from row: borrowing Row, at index: Int) throws -> [UInt8] {
        switch sqlite3_column_type(row.statement.handle, Int32(index)) {
        case SQLITE_BLOB, SQLITE_TEXT: row.withBytes(at: index) { [UInt8]($0) }
        default: throw row.mismatch(at: index, wanted: [UInt8].self)
        }
    }
}

extension Value: ColumnReadable {
    /// Reads any column.
    public static func read(from row: borrowing Row, at index: Int) throws -> Value { row.value(at: index) }
}

extension Optional: ColumnReadable where Wrapped: ColumnReadable {
    /// Reads a column; NULL becomes `nil`.
    @inlinable
    public static func read(from row: borrowing Row, at index: Int) throws -> Wrapped? {
        row.isNull(at: index) ? nil : try Wrapped.read(from: row, at: index)
    }
}
