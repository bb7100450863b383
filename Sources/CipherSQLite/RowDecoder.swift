internal import CipherErrors

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension Connection {
    /// Every row as a Codable value: columns are found by name, with regard to case where several differ in it alone.
    ///
    /// A property that is an optional is `nil` where the query has no column of its name.
    ///
    /// - Throws: ``DatabaseError``, or `DecodingError` naming the column where one that is needed is missing, or one does
    ///   not fit.
    @inlinable
    public func rows<Model: Decodable>(_ type: Model.Type, _ sql: SQL) throws -> [Model] {
        var result: [Model] = []
        try forEachDecoder(sql) { decoder in
            result.append(try Model(from: decoder))
            return true
        }
        return result
    }

    /// The first row as a Codable value, `nil` where there is none.
    ///
    /// - Throws: As ``rows(_:_:)``.
    @inlinable
    public func row<Model: Decodable>(_ type: Model.Type, _ sql: SQL) throws -> Model? {
        var result: Model?
        try forEachDecoder(sql) { decoder in
            result = try Model(from: decoder)
            return false
        }
        return result
    }

    /// Every row as a Codable value of the type that is expected.
    ///
    /// - Throws: As ``rows(_:_:)``.
    @inlinable
    public func rows<Model: Decodable>(_ sql: SQL) throws -> [Model] { try rows(Model.self, sql) }

    /// The first row as a Codable value of the type that is expected, `nil` where there is none.
    ///
    /// - Throws: As ``rows(_:_:)``.
    @inlinable
    public func row<Model: Decodable>(_ sql: SQL) throws -> Model? { try row(Model.self, sql) }

    /// Lends a decoder of each row to `body`, until that returns `false`.
    @usableFromInline
    func forEachDecoder(_ sql: SQL, _ body: (any Decoder) throws -> Bool) throws {
        try withStatement(sql) { statement in
            guard try statement.step() else { return }
            // After the first step, which compiles again when the schema has changed since.
            let decoder = RowDecoder(statement)
            while try body(decoder), try statement.step() {}
        }
    }
}

extension Data: Bindable, ColumnReadable {
    /// The bytes.
    public var databaseValue: Value { .blob([UInt8](self)) }

    /// A BLOB or TEXT column.
    public static func read(from row: borrowing Row, at index: Int) throws -> Data {
        Data(try [UInt8].read(from: row, at: index))
    }
}

extension Date: Bindable, ColumnReadable {
    /// Seconds since 1970 as a REAL, the "unixepoch" of SQLite's date functions.
    public var databaseValue: Value { .real(timeIntervalSince1970) }

    /// A REAL or INTEGER column of seconds since 1970.
    public static func read(from row: borrowing Row, at index: Int) throws -> Date {
        Date(timeIntervalSince1970: try Double.read(from: row, at: index))
    }
}

extension UUID: Bindable, ColumnReadable {
    /// The text form, in capitals.
    public var databaseValue: Value { .text(uuidString) }

    /// A TEXT column in the text form.
    public static func read(from row: borrowing Row, at index: Int) throws -> UUID {
        guard let uuid = UUID(uuidString: try String.read(from: row, at: index)) else {
            throw row.mismatch(at: index, wanted: UUID.self)
        }
        return uuid
    }
}

/// The columns of a statement's current row by name, worked out once for all rows.
private final class RowColumns {
    let row: Row
    /// The names in order; `nil` for a second column of the same name, which nobody can ask for.
    private let names: [String?]
    /// What names stand for: those of the columns, and others that were asked for.
    private var indexes: [String: Int?]
    /// The column that was asked for last: mostly the next one follows, or it is asked for again.
    private var latest = 0

    init(_ statement: Statement) {
        row = Row(of: statement)
        let all = (0..<statement.columnCount).map(statement.columnName)
        let indexes = Dictionary(zip(all, all.indices.map(Optional.some)), uniquingKeysWith: { first, _ in first })
        names = all.enumerated().map { indexes[$1] == $0 ? $1 : nil }
        self.indexes = indexes
    }

    var all: [String] { names.compactMap(\.self) }

    func index(of name: String) -> Int? {
        let next = latest + 1 < names.count ? latest + 1 : 0
        if names[next] == name {
            latest = next
        } else if names[latest] != name {
            if indexes[name] == nil { indexes[name] = .some(unexact(name)) }
            guard case .some(.some(let index)) = indexes[name] else { return nil }
            latest = index
        }
        return latest
    }

    /// The first column whose name differs in case alone: that of ASCII, as SQLite compares names.
    private func unexact(_ name: String) -> Int? {
        func folded(_ name: String) -> [UInt8] { name.utf8.map { 0x41...0x5a ~= $0 ? $0 | 0x20 : $0 } }
        let wanted = folded(name)
        return names.firstIndex { $0.map(folded) == wanted }
    }

    /// A column's value, `nil` where there is no such column.
    func read<Column: ColumnReadable>(_ type: Column.Type, named name: String) throws -> Column? {
        guard let index = index(of: name) else { return nil }
        return try Column.read(from: row, at: index)
    }
}

/// Decodes one row after the other: it always stands for the current one.
private final class RowDecoder: Decoder {
    private let columns: RowColumns
    /// The container that was asked for last, most often for the same keys as the next row will be.
    private var latest: Any?
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    convenience init(_ statement: Statement) {
        self.init(RowColumns(statement))
    }

    fileprivate init(_ columns: RowColumns) {
        self.columns = columns
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        if let container = latest as? KeyedDecodingContainer<Key> { return container }
        let container = KeyedDecodingContainer(RowContainer<Key>(columns: columns))
        latest = container
        return container
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw unsupported("a row is decoded by column names, not as a list")
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        throw unsupported("a row is decoded by column names; use value(_:_:) or values(_:_:) for a single column")
    }

    private func unsupported(_ text: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: [], debugDescription: text))
    }
}

private struct RowContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let columns: RowColumns
    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { columns.all.compactMap { Key(stringValue: $0) } }

    func contains(_ key: Key) -> Bool { columns.index(of: key.stringValue) != nil }

    /// Inlined, so that what it calls is compiled for each type of column: the type of the keys is not known here.
    @inline(__always)
    private func read<Column: ColumnReadable>(_ key: Key) throws -> Column {
        do {
            if let column = try columns.read(Column.self, named: key.stringValue) { return column }
        } catch let error as DatabaseError {
            throw mismatch(Column.self, key, error)
        }
        throw missing(key)
    }

    private func mismatch(_ type: Any.Type, _ key: Key, _ error: DatabaseError) -> DecodingError {
        .typeMismatch(type, .init(codingPath: [key], debugDescription: error.message, underlyingError: error))
    }

    private func missing(_ key: Key) -> DecodingError {
        .keyNotFound(key, .init(codingPath: [], debugDescription: "the query has no column \(key.stringValue)"))
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        guard let index = columns.index(of: key.stringValue) else { throw missing(key) }
        return columns.row.isNull(at: index)
    }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try read(key) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try read(key) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try read(key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try read(key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try read(key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try read(key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try read(key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try read(key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try read(key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try read(key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try read(key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try read(key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try read(key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try read(key) }

    func decode<Model: Decodable>(_ type: Model.Type, forKey key: Key) throws -> Model {
        // Types that are both, such as Data and Date, are columns, not structures.
        if let column = type as? any ColumnReadable.Type, let model = try readAny(column, key) as? Model {
            return model
        }
        return try Model(from: ColumnDecoder(container: self, key: key))
    }

    private func readAny<Column: ColumnReadable>(_ type: Column.Type, _ key: Key) throws -> any ColumnReadable {
        let column: Column = try read(key)
        return column
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { throw unsupported(key) }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw unsupported(key) }
    func superDecoder() throws -> any Decoder { RowDecoder(columns) }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw unsupported(key) }

    fileprivate func unsupported(_ key: Key) -> DecodingError {
        .dataCorrupted(.init(codingPath: [key], debugDescription: "a column holds one value, not a structure"))
    }
}

/// Decodes one column, for enumerations with raw values and other types of a single value.
private struct ColumnDecoder<Key: CodingKey>: Decoder, SingleValueDecodingContainer {
    let container: RowContainer<Key>
    let key: Key
    var codingPath: [any CodingKey] { [key] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Nested: CodingKey>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
        throw container.unsupported(key)
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw container.unsupported(key) }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { (try? container.decodeNil(forKey: key)) ?? true }
    func decode<Model: Decodable>(_ type: Model.Type) throws -> Model {
        guard type is any ColumnReadable.Type else { throw container.unsupported(key) }
        return try container.decode(type, forKey: key)
    }
}
