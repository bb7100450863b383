internal import CCipherEngine
public import CipherErrors

/// The current row of a running query, lent to a closure.
///
/// Copy out what must outlive it.
public struct Row: ~Copyable {
    let statement: Statement

    /// The current row of a statement, at each step anew.
    package init(of statement: Statement) {
        self.statement = statement
    }

    /// The number of columns.
    public var count: Int { statement.columnCount }

    /// The name of a column, from 0.
    public func name(at index: Int) -> String { statement.columnName(index) }

    /// The value of a column, from 0.
    ///
    /// The corresponding C functions are `sqlite3_column_value` and `sqlite3_value_type` with its family.
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

    /// Whether a column holds text; it stays in the encoding of the database.
    package func isText(at index: Int) -> Bool { sqlite3_value_type(cell(at: index)) == SQLITE_TEXT }

    /// Whether a column is NULL.
    public func isNull(at index: Int) -> Bool { sqlite3_value_type(cell(at: index)) == SQLITE_NULL }

    /// A column, from 0, as a Swift value.
    ///
    /// - Throws: ``DatabaseError`` with `SQLITE_MISMATCH` where the storage class does not fit or a number is out of
    ///   range: nothing is cut or guessed.
    @inlinable
    public func get<Column: ColumnReadable>(_ type: Column.Type = Column.self, at index: Int) throws -> Column {
        try Column.read(from: self, at: index)
    }

    /// A column by its name, in any case where no other is closer, as a Swift value.
    ///
    /// - Throws: ``DatabaseError`` with `SQLITE_MISMATCH` as ``get(_:at:)``, and where there is no column of that name.
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
                message: "the query has no column \(name); it has \(names.joined(separator: ", "))", sql: statement.sql)
        }
        return index
    }

    /// Lends the bytes of a text or blob column; those of a text are UTF-8 in every database.
    public func withBytes<Result>(at index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        let cell = cell(at: index)
        // Without this the bytes of a UTF-16 database would depend on whether the column was read as text before.
        if sqlite3_value_type(cell) == SQLITE_TEXT { _ = sqlite3_value_text(cell) }
        let start = sqlite3_value_blob(cell)
        let count = sqlite3_value_bytes(cell)
        return try body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(count)))
    }

    /// Whether a text column holds an ASCII word, in any case.
    ///
    /// `LIKE` would run the function of that name, which may be the app's own.
    package func holds(_ word: StaticString, at index: Int) -> Bool { withBytes(at: index) { $0.containsWord(word) } }

    /// A column where it stands in the row, looked up once for its type and its content.
    ///
    /// Source: SQLite, "Protected And Unprotected SQL Values": a connection without a mutex knows no difference.
    private func cell(at index: Int) -> OpaquePointer? { sqlite3_column_value(statement.handle, Int32(index)) }

    /// Text, with explicit length: text may hold NUL characters.
    private static func text(of cell: OpaquePointer?) -> String? {
        // Text before bytes: the first call may convert from UTF-16, and the second then counts the result.
        guard let start = sqlite3_value_text(cell) else { return nil }
        let count = sqlite3_value_bytes(cell)
        return String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// An INTEGER column; `nil` for any other.
    @usableFromInline func integer(at index: Int) -> Int64? {
        let cell = cell(at: index)
        return sqlite3_value_type(cell) == SQLITE_INTEGER ? sqlite3_value_int64(cell) : nil
    }

    /// A TEXT column; `nil` for any other.
    func text(at index: Int) -> String? {
        let cell = cell(at: index)
        return sqlite3_value_type(cell) == SQLITE_TEXT ? Self.text(of: cell) : nil
    }

    /// The bytes of a TEXT column in UTF-8, valid or not; `nil` for any other.
    func textBytes(at index: Int) -> [UInt8]? {
        let cell = cell(at: index)
        // Text before bytes, as for a `String`.
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
            message: "column \(index) (\(name(at: index))) is \(found), which does not fit \(wanted)",
            sql: statement.sql)
    }
}

/// A type that can be read from a column of a row.
public protocol ColumnReadable {
    /// Reads a column, from 0, or throws where it does not fit.
    static func read(from row: borrowing Row, at index: Int) throws -> Self
}

extension ColumnReadable where Self: FixedWidthInteger {
    /// An INTEGER column that fits the type.
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
    /// An INTEGER column: 0 is false, others are true.
    public static func read(from row: borrowing Row, at index: Int) throws -> Bool {
        guard let integer = row.integer(at: index) else {
            throw row.mismatch(at: index, wanted: Bool.self)
        }
        return integer != 0
    }
}

extension Double: ColumnReadable {
    /// A REAL or INTEGER column.
    public static func read(from row: borrowing Row, at index: Int) throws -> Double {
        switch row.value(at: index) {
        case .real(let real): return real
        case .integer(let integer): return Double(integer)
        default: throw row.mismatch(at: index, wanted: Double.self)
        }
    }
}

extension Float: ColumnReadable {
    /// A REAL or INTEGER column.
    public static func read(from row: borrowing Row, at index: Int) throws -> Float {
        Float(try Double.read(from: row, at: index))
    }
}

extension String: ColumnReadable {
    /// A TEXT column.
    public static func read(from row: borrowing Row, at index: Int) throws -> String {
        guard let text = row.text(at: index) else { throw row.mismatch(at: index, wanted: String.self) }
        return text
    }
}

extension [UInt8]: ColumnReadable {
    /// A BLOB or TEXT column.
    public static func read(from row: borrowing Row, at index: Int) throws -> [UInt8] {
        switch sqlite3_column_type(row.statement.handle, Int32(index)) {
        case SQLITE_BLOB, SQLITE_TEXT: row.withBytes(at: index) { [UInt8]($0) }
        default: throw row.mismatch(at: index, wanted: [UInt8].self)
        }
    }
}

extension Value: ColumnReadable {
    /// Any column.
    public static func read(from row: borrowing Row, at index: Int) throws -> Value { row.value(at: index) }
}

extension Optional: ColumnReadable where Wrapped: ColumnReadable {
    /// NULL is `nil`.
    @inlinable
    public static func read(from row: borrowing Row, at index: Int) throws -> Wrapped? {
        row.isNull(at: index) ? nil : try Wrapped.read(from: row, at: index)
    }
}
