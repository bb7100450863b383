/// SQL text with the values it binds.
///
/// Interpolated values are bound, never pasted into the text.
///
/// ```swift
/// try db.execute("INSERT INTO chat(uid, body) VALUES (\(uid), \(body))")
/// ```
public struct SQL: Sendable, Equatable, ExpressibleByStringInterpolation {
    /// The text, with `?` where a value is bound.
    public private(set) var text: String
    /// The bound values, in order.
    public private(set) var values: [Value]

    /// Text as it is, with values for its `?` parameters, in order.
    public init(text: String, values: [Value] = []) {
        self.text = text
        self.values = values
    }

    /// Text without parameters.
    public init(stringLiteral value: String) {
        self.init(text: value)
    }

    /// Text with its interpolations bound.
    public init(stringInterpolation: Interpolation) {
        self.init(text: stringInterpolation.text, values: stringInterpolation.values)
    }

    /// Collects the pieces of an interpolated literal.
    public struct Interpolation: StringInterpolationProtocol {
        fileprivate var text = ""
        fileprivate var values: [Value] = []

        /// Reserves room for the literal parts.
        public init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity + interpolationCount)
            values.reserveCapacity(interpolationCount)
        }

        /// Adds literal SQL.
        public mutating func appendLiteral(_ literal: String) {
            text += literal
        }

        /// Binds a value.
        public mutating func appendInterpolation(_ value: some Bindable) {
            text += "?"
            values.append(value.databaseValue)
        }

        /// Binds a value, or NULL for `nil`.
        public mutating func appendInterpolation<Wrapped: Bindable>(_ value: Wrapped?) {
            text += "?"
            values.append(value.databaseValue)
        }

        /// Adds the name of a table or column, quoted.
        public mutating func appendInterpolation(identifier: String) {
            text += SQL.quoted(identifier: identifier)
        }

        /// Adds another piece of SQL with its values.
        public mutating func appendInterpolation(_ sql: SQL) {
            text += sql.text
            values += sql.values
        }
    }

    /// A name in double quotes, with inner quotes doubled.
    ///
    /// Source: SQLite, "SQLite Keywords".
    package static func quoted(identifier: String) -> String { quoted(identifier, by: "\"") }

    /// Text in single quotes, for the few statements that take no parameters, such as PRAGMA and ATTACH.
    package static func quoted(text: String) -> String { quoted(text, by: "'") }

    /// By scalar, not by character: a quote with a combining mark behind it is one character and still a quote to SQLite.
    private static func quoted(_ text: String, by quote: Unicode.Scalar) -> String {
        var result = String.UnicodeScalarView()
        result.append(quote)
        for scalar in text.unicodeScalars {
            if scalar == quote { result.append(quote) }
            result.append(scalar)
        }
        result.append(quote)
        return String(result)
    }
}
