internal import CipherErrors
internal import CipherPlatform

extension Connection {
    /// Returns every row as a Codable value.
    ///
    /// Columns are found by name. Letter case matters only if several names differ in nothing else.
    ///
    /// An optional property is `nil` if the query has no column with its name. A structure is read from the columns
    /// whose names begin with the property's name and a dot, as in `SELECT author.name AS "author.name"`, even if the
    /// query also has a column with the property's name; an optional structure is `nil` if all of these columns are
    /// NULL, as in an outer join. Without such columns, structures, arrays and dictionaries are read from one column of
    /// JSON text.
    ///
    /// - Throws: ``DatabaseError``, or `DecodingError` with the name of the column if a required column is missing, or
    ///   if the value of a column does not fit.
    @inlinable
    public func rows<Model: Decodable>(_ type: Model.Type, _ sql: SQL) throws -> [Model] {
        var result: [Model] = []
        try forEachDecoder(sql) { decoder in
            result.append(try Model(from: decoder))
            return true
        }
        return result
    }

    /// Returns the first row as a Codable value; `nil` if there is none.
    ///
    /// - Throws: The same errors as ``rows(_:_:)``.
    @inlinable
    public func row<Model: Decodable>(_ type: Model.Type, _ sql: SQL) throws -> Model? {
        var result: Model?
        try forEachDecoder(sql) { decoder in
            result = try Model(from: decoder)
            return false
        }
        return result
    }

    /// Returns every row as a Codable value, with the type inferred from the context.
    ///
    /// - Throws: The same errors as ``rows(_:_:)``.
    @inlinable
    public func rows<Model: Decodable>(_ sql: SQL) throws -> [Model] { try rows(Model.self, sql) }

    /// Returns the first row as a Codable value, with the type inferred from the context; `nil` if there is none.
    ///
    /// - Throws: The same errors as ``rows(_:_:)``.
    @inlinable
    public func row<Model: Decodable>(_ sql: SQL) throws -> Model? { try row(Model.self, sql) }

    /// Lends each row to `body` as a Codable value, one after the other, for results that should not be held in memory
    /// as a whole.
    ///
    /// - Throws: The same errors as ``rows(_:_:)``, or any error thrown by `body`, which ends the query.
    @inlinable
    public func forEach<Model: Decodable>(_ type: Model.Type, _ sql: SQL, _ body: (Model) throws -> Void) throws {
        try forEachDecoder(sql) { decoder in
            try body(Model(from: decoder))
            return true
        }
    }

    /// Returns whether a query has a row.
    ///
    /// - Throws: ``DatabaseError``.
    public func exists(_ sql: SQL) throws -> Bool {
        try withStatement(sql) { statement in
            let isThere = try statement.step()
            try statement.finish()
            return isThere
        }
    }

    /// Lends a decoder for each row to `body`, until it returns `false`.
    @usableFromInline
    func forEachDecoder(_ sql: SQL, _ body: (any Decoder) throws -> Bool) throws {
        try withStatement(sql) { statement in
            guard try statement.step() else { return }
            // The decoder is created after the first step, which compiles the statement again if the schema has
            // changed.
            let decoder = RowDecoder(statement)
            while try body(decoder), try statement.step() {}
            try statement.finish()
        }
    }
}

/// The columns of a statement's current row by name, determined once for all rows.
private final class RowColumns {
    let row: Row
    /// Whether the name of any column contains a dot, so that a structure may be read from several columns.
    let hasGroups: Bool
    /// The names of the columns in order; `nil` for a second column with the same name, which cannot be requested.
    private let names: [ExactName?]
    /// The column indexes by name, for the columns' names and for other names that were requested.
    @exclusivity(unchecked) private var indexes: [ExactName: Int?]
    /// The columns whose names begin with a prefix, by prefix.
    private var groups: [String: [Int]] = [:]
    /// The column that was requested last; usually the next request is for the following column, or for the same one.
    @exclusivity(unchecked) private var latest = 0

    init(_ statement: Statement) {
        row = Row(of: statement)
        let all = (0..<statement.columnCount).map { ExactName(statement.columnName($0)) }
        let indexes = Dictionary(zip(all, all.indices.map(Optional.some)), uniquingKeysWith: { first, _ in first })
        hasGroups = all.contains { $0.text.utf8.contains(UInt8(ascii: ".")) }
        names = all.enumerated().map { indexes[$1] == $0 ? $1 : nil }
        self.indexes = indexes
    }

    var all: [String] { names.compactMap(\.?.text) }

    func index(of name: String) -> Int? {
        let next = latest + 1 < names.count ? latest + 1 : 0
        if names[next]?.isSpelled(name) == true {
            latest = next
        } else if names[latest]?.isSpelled(name) != true {
            let exact = ExactName(name)
            if indexes[exact] == nil { indexes[exact] = .some(unexact(name)) }
            guard case .some(.some(let index)) = indexes[exact] else { return nil }
            latest = index
        }
        return latest
    }

    /// Returns the first column whose name differs only in ASCII case, as SQLite compares names.
    private func unexact(_ name: String) -> Int? {
        let wanted = TableAccess.folded(name)
        return names.firstIndex { $0.map { TableAccess.folded($0.text) } == wanted }
    }

    /// Returns whether there are columns whose names begin with a prefix, and whether all of them are NULL.
    func begin(with prefix: String) -> (isThere: Bool, isNull: Bool) {
        let indexes = indexes(prefix)
        return (!indexes.isEmpty, indexes.allSatisfy { row.isNull(at: $0) })
    }

    private func indexes(_ prefix: String) -> [Int] {
        if let known = groups[prefix] { return known }
        var found = names.indices.filter { names[$0]?.text.hasPrefix(prefix) == true }
        if found.isEmpty {
            let wanted = TableAccess.folded(prefix)
            found = names.indices.filter { names[$0].map { TableAccess.folded($0.text) }?.hasPrefix(wanted) == true }
        }
        groups[prefix] = found
        return found
    }

    /// Returns a column's value; `nil` if there is no such column.
    func read<Column: ColumnReadable>(_ type: Column.Type, named name: String) throws -> Column? {
        guard let index = index(of: name) else { return nil }
        return try Column.read(from: row, at: index)
    }
}

/// A decoder that is used for one row after the other; it always decodes the current row.
private final class RowDecoder: Decoder {
    private let columns: RowColumns
    private let prefix: String
    /// The container that was requested last; the next row usually requests one for the same keys.
    @exclusivity(unchecked) private var latest: AnyContainer?
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    convenience init(_ statement: Statement) {
        self.init(RowColumns(statement), prefix: "", path: [])
    }

    /// - Parameter prefix: The prefix of the names of the columns to decode.
    fileprivate init(_ columns: RowColumns, prefix: String, path: [any CodingKey]) {
        self.columns = columns
        self.prefix = prefix
        codingPath = path
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        if let latest, latest.keys == Key.self { return unsafeDowncast(latest, to: Container<Key>.self).container }
        let container = KeyedDecodingContainer(
            RowContainer<Key>(columns: columns, prefix: prefix, codingPath: codingPath))
        latest = Container(container)
        return container
    }

    /// A container for keys of one type.
    ///
    /// The type is recognized by comparison, because a dynamic cast takes longer than reading a column.
    private class AnyContainer {
        let keys: any CodingKey.Type

        init(_ keys: any CodingKey.Type) {
            self.keys = keys
        }
    }

    private final class Container<Key: CodingKey>: AnyContainer {
        let container: KeyedDecodingContainer<Key>

        init(_ container: KeyedDecodingContainer<Key>) {
            self.container = container
            super.init(Key.self)
        }
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw unsupported("a row must be decoded by column name, not as a list")
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        throw unsupported("a row must be decoded by column name; use value(_:_:) or values(_:_:) for a single column")
    }

    private func unsupported(_ text: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: codingPath, debugDescription: text))
    }
}

/// The container of a row; it is a class, because the standard library copies a container for each decoded property.
private final class RowContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let columns: RowColumns
    let prefix: String
    let codingPath: [any CodingKey]

    init(columns: RowColumns, prefix: String, codingPath: [any CodingKey]) {
        self.columns = columns
        self.prefix = prefix
        self.codingPath = codingPath
    }

    var allKeys: [Key] {
        columns.all.compactMap { $0.hasPrefix(prefix) ? Key(stringValue: String($0.dropFirst(prefix.count))) : nil }
    }

    func contains(_ key: Key) -> Bool {
        columns.index(of: name(key)) != nil || columns.begin(with: name(key) + ".").isThere
    }

    @inline(__always)
    private func name(_ key: Key) -> String { prefix.isEmpty ? key.stringValue : prefix + key.stringValue }

    /// Reads one column.
    ///
    /// The function is inlined, so that the functions it calls are compiled for each type of column; the type of the
    /// keys is not known here.
    @inline(__always)
    private func read<Column: ColumnReadable>(_ key: Key) throws -> Column {
        do {
            if let column = try columns.read(Column.self, named: name(key)) { return column }
        } catch let error as DatabaseError {
            throw mismatch(Column.self, key, error)
        }
        throw missing(key)
    }

    private func mismatch(_ type: Any.Type, _ key: Key, _ error: DatabaseError) -> DecodingError {
        .typeMismatch(
            type, .init(codingPath: codingPath + [key], debugDescription: error.message, underlyingError: error))
    }

    fileprivate func missing(_ key: Key) -> DecodingError {
        .keyNotFound(
            key, .init(codingPath: codingPath, debugDescription: "the query has no column \(name(key))"))
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        if let index = columns.index(of: name(key)) { return columns.row.isNull(at: index) }
        let group = columns.begin(with: name(key) + ".")
        guard group.isThere else { throw missing(key) }
        return group.isNull
    }

    func decodeIfPresent<Model: Decodable>(_ type: Model.Type, forKey key: Key) throws -> Model? {
        if let group = group(type, key) { return group.isNull ? nil : try decode(type, forKey: key) }
        guard contains(key), try !decodeNil(forKey: key) else { return nil }
        return try decode(type, forKey: key)
    }

    /// Returns whether the columns of a structure are all NULL; `nil` if it is read from one column.
    private func group(_ type: Any.Type, _ key: Key) -> (isThere: Bool, isNull: Bool)? {
        guard columns.hasGroups, !(type is any ColumnReadable.Type) else { return nil }
        let group = columns.begin(with: name(key) + ".")
        return group.isThere ? group : nil
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
        // Types that could be columns or structures, such as Data and Date, are columns. The frequent types come first,
        // because they need no lookup.
        if type == Date.self { return Self.same(try read(key) as Date) }
        if type == Data.self { return Self.same(try read(key) as Data) }
        if type == UUID.self { return Self.same(try read(key) as UUID) }
        if let column = type as? any ColumnReadable.Type, let model = try readAny(column, key) as? Model {
            return model
        }
        return try Model(from: ColumnDecoder(container: self, key: key))
    }

    /// Returns a value whose type was compared with the result type.
    private static func same<Value, Model>(_ value: Value) -> Model {
        unsafeBitCast(value, to: Model.self)
    }

    private func readAny<Column: ColumnReadable>(_ type: Column.Type, _ key: Key) throws -> any ColumnReadable {
        let column: Column = try read(key)
        return column
    }

    /// Returns the decoder of a structure: from its own columns, or from the JSON in one column.
    fileprivate func structure(_ key: Key) throws -> any Decoder {
        if columns.hasGroups, columns.begin(with: name(key) + ".").isThere {
            return RowDecoder(columns, prefix: name(key) + ".", path: codingPath + [key])
        }
        guard columns.index(of: name(key)) != nil else { throw missing(key) }
        let text: [UInt8] = try read(key)
        do {
            return try ColumnJSON.decoder(text)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: codingPath + [key], debugDescription: "column \(name(key)) does not contain valid JSON",
                    underlyingError: error))
        }
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { try structure(key).container(keyedBy: type) }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try structure(key).unkeyedContainer()
    }
    func superDecoder() throws -> any Decoder { RowDecoder(columns, prefix: prefix, path: codingPath) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try structure(key) }
}

/// Decodes one property: an enumeration with a raw value or another single-value type from its column, or a structure
/// from several columns or from JSON.
private struct ColumnDecoder<Key: CodingKey>: Decoder, SingleValueDecodingContainer {
    let container: RowContainer<Key>
    let key: Key
    var codingPath: [any CodingKey] { container.codingPath + [key] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Nested: CodingKey>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
        try container.nestedContainer(keyedBy: type, forKey: key)
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try container.nestedUnkeyedContainer(forKey: key) }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { (try? container.decodeNil(forKey: key)) ?? true }
    func decode<Model: Decodable>(_ type: Model.Type) throws -> Model { try container.decode(type, forKey: key) }
}
