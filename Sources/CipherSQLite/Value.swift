/// A value in one of SQLite's five storage classes.
///
/// Source: SQLite, "Datatypes In SQLite", section 2.
public enum Value: Sendable, Equatable {
    /// SQL NULL.
    case null
    /// A 64-bit signed integer.
    case integer(Int64)
    /// An IEEE 754 double.
    case real(Double)
    /// Text. Bytes that are not valid UTF-8 are replaced in the `String`; to get them, read the column as a blob.
    case text(String)
    /// Bytes.
    case blob([UInt8])
}

/// A type that can be bound to a parameter of a statement.
public protocol Bindable {
    /// The value to bind.
    var databaseValue: Value { get }
}

extension Value: Bindable {
    /// The value itself.
    @inlinable public var databaseValue: Value { self }
}

extension Bindable where Self: FixedWidthInteger {
    /// The integer.
    @inlinable public var databaseValue: Value { .integer(Int64(self)) }
}

// UInt and UInt64 are left out: SQLite stores signed 64-bit integers, and nothing is truncated or guessed.
extension Int: Bindable {}
extension Int8: Bindable {}
extension Int16: Bindable {}
extension Int32: Bindable {}
extension Int64: Bindable {}
extension UInt8: Bindable {}
extension UInt16: Bindable {}
extension UInt32: Bindable {}

extension Bool: Bindable {
    /// 1 or 0.
    @inlinable public var databaseValue: Value { .integer(self ? 1 : 0) }
}

extension Double: Bindable {
    /// The number.
    ///
    /// SQLite stores NaN as NULL.
    @inlinable public var databaseValue: Value { .real(self) }
}

extension Float: Bindable {
    /// The number as a double.
    @inlinable public var databaseValue: Value { .real(Double(self)) }
}

extension String: Bindable {
    /// The text.
    @inlinable public var databaseValue: Value { .text(self) }
}

extension Substring: Bindable {
    /// The text.
    @inlinable public var databaseValue: Value { .text(String(self)) }
}

extension [UInt8]: Bindable {
    /// The bytes.
    @inlinable public var databaseValue: Value { .blob(self) }
}

extension Optional: Bindable where Wrapped: Bindable {
    /// The wrapped value, or NULL.
    @inlinable public var databaseValue: Value { self?.databaseValue ?? .null }
}
