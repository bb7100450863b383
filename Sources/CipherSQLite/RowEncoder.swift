internal import CipherPlatform

/// Splits an Encodable value into columns: the names of its properties and the value to bind for each, including those
/// that are `nil`.
final class RowEncoder: Encoder {
    // There is no exclusivity check at each use, because no code that is called during a use accesses these again.
    @exclusivity(unchecked) fileprivate(set) var names: [String] = []
    @exclusivity(unchecked) fileprivate(set) var values: [Value] = []
    fileprivate let forms: ColumnForms
    /// The reason that the value cannot be a row.
    @exclusivity(unchecked) fileprivate var fault: String?
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// - Throws: `EncodingError` if the value is not a structure of columns; any error thrown by its own encoding.
    init(_ value: some Encodable, forms: ColumnForms) throws {
        self.forms = forms
        names.reserveCapacity(16)
        values.reserveCapacity(16)
        try value.encode(to: self)
        guard let fault else { return }
        throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: fault))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(RowEncodingContainer<Key>(row: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        fault = "a row must be encoded from a structure with a property for each column, not from a list"
        return IgnoringContainer()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        fault = "a row must be encoded from a structure with a property for each column, not from a single value"
        return IgnoringContainer()
    }
}

private struct RowEncodingContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let row: RowEncoder
    var codingPath: [any CodingKey] { [] }

    /// The function is inlined, so that the functions it calls are compiled for each type of column.
    @inline(__always)
    private func add(_ value: Value, _ key: Key) {
        row.names.append(key.stringValue)
        row.values.append(value)
    }

    func encodeNil(forKey key: Key) { add(.null, key) }
    func encode(_ value: Bool, forKey key: Key) { add(value.databaseValue, key) }
    func encode(_ value: String, forKey key: Key) { add(.text(value), key) }
    func encode(_ value: Double, forKey key: Key) throws { add(try ColumnEncoder.number(value, [key]), key) }
    func encode(_ value: Float, forKey key: Key) throws { add(try ColumnEncoder.number(Double(value), [key]), key) }
    func encode(_ value: Int, forKey key: Key) { add(.integer(Int64(value)), key) }
    func encode(_ value: Int8, forKey key: Key) { add(value.databaseValue, key) }
    func encode(_ value: Int16, forKey key: Key) { add(value.databaseValue, key) }
    func encode(_ value: Int32, forKey key: Key) { add(value.databaseValue, key) }
    func encode(_ value: Int64, forKey key: Key) { add(.integer(value), key) }
    func encode(_ value: UInt, forKey key: Key) throws { add(try integer(value, key), key) }
    func encode(_ value: UInt8, forKey key: Key) { add(value.databaseValue, key) }
    func encode(_ value: UInt16, forKey key: Key) { add(value.databaseValue, key) }
    func encode(_ value: UInt32, forKey key: Key) { add(value.databaseValue, key) }
    func encode(_ value: UInt64, forKey key: Key) throws { add(try integer(value, key), key) }

    func encode<Property: Encodable>(_ value: Property, forKey key: Key) throws {
        add(try ColumnEncoder.value(value, row.forms, key), key)
    }

    // A property that is `nil` is NULL in the row; it is not left out.
    func encodeIfPresent(_ value: Bool?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: String?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: Double?, forKey key: Key) throws {
        add(try value.map { try ColumnEncoder.number($0, [key]) } ?? .null, key)
    }
    func encodeIfPresent(_ value: Float?, forKey key: Key) throws {
        add(try value.map { try ColumnEncoder.number(Double($0), [key]) } ?? .null, key)
    }
    func encodeIfPresent(_ value: Int?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: Int8?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: Int16?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: Int32?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: UInt?, forKey key: Key) throws {
        add(try value.map { try integer($0, key) } ?? .null, key)
    }
    func encodeIfPresent(_ value: UInt8?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: UInt16?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: UInt32?, forKey key: Key) { add(value.databaseValue, key) }
    func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws {
        add(try value.map { try integer($0, key) } ?? .null, key)
    }
    func encodeIfPresent<Property: Encodable>(_ value: Property?, forKey key: Key) throws {
        add(try value.map { try ColumnEncoder.value($0, row.forms, key) } ?? .null, key)
    }

    private func integer(_ value: some FixedWidthInteger, _ key: Key) throws -> Value {
        guard let integer = Int64(exactly: value) else {
            throw EncodingError.invalidValue(
                value,
                .init(
                    codingPath: [key], debugDescription: "the value does not fit into a signed 64-bit integer"))
        }
        return .integer(integer)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        refuse(key)
        return KeyedEncodingContainer(IgnoringKeyedContainer())
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        refuse(key)
        return IgnoringContainer()
    }

    func superEncoder() -> any Encoder {
        row.fault = "a row must be encoded from one structure, not from a class and its superclass"
        return ColumnEncoder(row.forms)
    }

    func superEncoder(forKey key: Key) -> any Encoder { superEncoder() }

    private func refuse(_ key: Key) {
        row.fault =
            "the column \(key.stringValue) can store only one value: give the property its own type, so "
            + "that its value is stored as JSON"
    }
}

/// Finds the value to bind for one property: that of a column type, of an enumeration with a raw value or of another
/// single-value type; for any other type, its JSON.
private final class ColumnEncoder: Encoder, SingleValueEncodingContainer {
    let forms: ColumnForms
    let codingPath: [any CodingKey]
    var value: Value?
    /// Whether the property consists of several values.
    var isStructure = false
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ forms: ColumnForms, _ codingPath: [any CodingKey] = []) {
        self.forms = forms
        self.codingPath = codingPath
    }

    static func value<Property: Encodable>(
        _ property: Property, _ forms: ColumnForms, _ key: any CodingKey
    ) throws -> Value {
        // The frequent types come first, because they need no lookup.
        if Property.self == Date.self { return try date(unsafeBitCast(property, to: Date.self), forms, [key]) }
        if Property.self == UUID.self { return forms.value(unsafeBitCast(property, to: UUID.self)) }
        if Property.self == Data.self { return unsafeBitCast(property, to: Data.self).databaseValue }
        // These casts also look through optionals.
        if let value = try column(property, forms, [key]) { return value }
        let encoder = ColumnEncoder(forms, [key])
        try property.encode(to: encoder)
        guard encoder.isStructure else { return encoder.value ?? .null }
        do {
            return try ColumnJSON.text(property)
        } catch {
            throw EncodingError.invalidValue(
                property,
                .init(
                    codingPath: [key], debugDescription: "the value cannot be encoded as JSON", underlyingError: error))
        }
    }

    /// Returns the value of a column type; `nil` for any other type.
    private static func column(_ value: Any, _ forms: ColumnForms, _ path: [any CodingKey]) throws -> Value? {
        switch value {
        case let value as Date: try date(value, forms, path)
        case let value as UUID: forms.value(value)
        case let value as Decimal where value.isNaN: throw unstorable(value, noNaN, path)
        case let value as Double: try number(value, path)
        case let value as Float: try number(Double(value), path)
        case let value as any Bindable: value.databaseValue
        default: nil
        }
    }

    private static func date(_ date: Date, _ forms: ColumnForms, _ path: [any CodingKey]) throws -> Value {
        guard let value = forms.value(date) else {
            // The description of a date that is not finite crashes.
            throw unstorable(date.timeIntervalSince1970, ColumnForms.beyondText, path)
        }
        return value
    }

    static func number(_ number: Double, _ path: @autoclosure () -> [any CodingKey]) throws -> Value {
        guard !number.isNaN else { throw unstorable(number, noNaN, path()) }
        return .real(number)
    }

    /// SQLite would store NaN as NULL, which a property that is not optional cannot read.
    private static let noNaN = "NaN cannot be stored: use nil instead"

    private static func unstorable(_ value: Any, _ reason: String, _ path: [any CodingKey]) -> EncodingError {
        .invalidValue(value, .init(codingPath: path, debugDescription: reason))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        isStructure = true
        return KeyedEncodingContainer(IgnoringKeyedContainer())
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        isStructure = true
        return IgnoringContainer()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { value = .null }
    func encode<Single: Encodable>(_ single: Single) throws {
        // Not all unsigned integers are `Bindable`.
        if let number = single as? any FixedWidthInteger {
            guard let integer = Int64(exactly: number) else {
                throw EncodingError.invalidValue(
                    single,
                    .init(
                        codingPath: [], debugDescription: "the value does not fit into a signed 64-bit integer"))
            }
            value = .integer(integer)
        } else if let column = try Self.column(single, forms, codingPath) {
            value = column
        } else {
            try single.encode(to: self)
        }
    }
}

/// Accepts and ignores everything that a value encodes.
private struct IgnoringContainer: UnkeyedEncodingContainer, SingleValueEncodingContainer {
    var codingPath: [any CodingKey] { [] }
    var count: Int { 0 }

    mutating func encodeNil() {}
    mutating func encode(_ value: some Encodable) {}
    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(IgnoringKeyedContainer())
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { self }
    mutating func superEncoder() -> any Encoder { ColumnEncoder(ColumnForms()) }
}

private struct IgnoringKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    var codingPath: [any CodingKey] { [] }

    mutating func encodeNil(forKey key: Key) {}
    mutating func encode(_ value: some Encodable, forKey key: Key) {}
    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> { KeyedEncodingContainer(IgnoringKeyedContainer<Nested>()) }
    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { IgnoringContainer() }
    mutating func superEncoder() -> any Encoder { ColumnEncoder(ColumnForms()) }
    mutating func superEncoder(forKey key: Key) -> any Encoder { superEncoder() }
}
