#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// SQL text with the values it binds.
///
/// Interpolated values are bound, never pasted into the text.
///
/// ```swift
/// try db.execute("INSERT INTO chat(uid, body) VALUES (\(uid), \(body))")
/// ```
public struct SQL: Sendable, ExpressibleByStringInterpolation {
    /// The pieces, in order.
    ///
    /// The text is put together only where it is compiled: in a loop the compiled statement is found by the pieces.
    @usableFromInline var pieces: ContiguousArray<Piece>

    @usableFromInline enum Piece: Sendable {
        /// Text of the program.
        case literal(StaticString)
        /// Text that was made, such as a quoted name.
        case text(String)
        /// The quoted name of something in a schema, which need not be Unicode.
        case name([UInt8])
        /// A value, which stands in the text as `?`.
        case parameter(Value)
        /// A value whose `?` stands in a text before it.
        case argument(Value)
    }

    /// The text, with `?` where a value is bound.
    ///
    /// For people: a name from a schema that is not valid UTF-8 is repaired in it, while SQLite is given its bytes.
    public var text: String {
        pieces.reduce(into: "") { $0 += $1.text }
    }

    /// What SQLite compiles.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        for piece in pieces {
            switch piece {
            case .literal(let text): text.withUTF8Buffer { bytes.append(contentsOf: $0) }
            case .text(let text): bytes.append(contentsOf: text.utf8)
            case .name(let name): bytes.append(contentsOf: name)
            case .parameter: bytes.append(UInt8(ascii: "?"))
            case .argument: break
            }
        }
        return bytes
    }

    /// The bound values, in order.
    public var values: [Value] { pieces.compactMap(\.value) }

    fileprivate init(pieces: ContiguousArray<Piece>) {
        self.pieces = pieces
    }

    /// Text as it is, with values for its `?` parameters, in order.
    public init(text: String, values: [Value] = []) {
        pieces = [.text(text)]
        pieces.append(contentsOf: values.lazy.map(Piece.argument))
    }

    /// Text without parameters.
    @inlinable
    public init(stringLiteral value: StaticString) {
        pieces = [.literal(value)]
    }

    /// Text with its interpolations bound.
    @inlinable
    public init(stringInterpolation: Interpolation) {
        pieces = stringInterpolation.pieces
    }

    /// How long the text is, in bytes.
    var length: Int {
        pieces.reduce(0) { length, piece in
            switch piece {
            case .literal(let text): length + text.utf8CodeUnitCount
            case .text(let text): length + text.utf8.count
            case .name(let name): length + name.count
            case .parameter: length + 1
            case .argument: length
            }
        }
    }

    /// Whether its text is made of these bytes.
    ///
    /// By bytes, for `String` compares by canonical equivalence, under which é in one scalar and in two are one text, and
    /// to SQLite two.
    func isSpelled(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var rest = bytes[...]
        for piece in pieces {
            let isNext =
                switch piece {
                case .literal(let text): text.withUTF8Buffer { rest.takeAway($0) }
                case .text(let text): text.withBytes { rest.takeAway($0) }
                case .name(let name): name.withUnsafeBufferPointer { rest.takeAway($0) }
                case .parameter: rest.popFirst() == UInt8(ascii: "?")
                case .argument: true
                }
            guard isNext else { return false }
        }
        return rest.isEmpty
    }

    /// Whether it asks about the database or sets it, instead of working with rows.
    var isPragma: Bool {
        func begins(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool { bytes.starts(with: "PRAGMA ".utf8) }
        return switch pieces.first {
        case .literal(let text): text.withUTF8Buffer(begins)
        case .text(let text): text.withBytes(begins)
        default: false
        }
    }

    /// Collects the pieces of an interpolated literal.
    public struct Interpolation: StringInterpolationProtocol {
        @usableFromInline var pieces: ContiguousArray<Piece> = []

        /// Reserves room for the literal parts.
        @inlinable
        public init(literalCapacity: Int, interpolationCount: Int) {
            pieces.reserveCapacity(2 * interpolationCount + 1)
        }

        /// Adds literal SQL.
        @inlinable
        public mutating func appendLiteral(_ literal: StaticString) {
            pieces.append(.literal(literal))
        }

        /// Binds a value.
        @inlinable
        public mutating func appendInterpolation(_ value: some Bindable) {
            pieces.append(.parameter(value.databaseValue))
        }

        /// Binds a value, or NULL for `nil`.
        @inlinable
        public mutating func appendInterpolation<Wrapped: Bindable>(_ value: Wrapped?) {
            pieces.append(.parameter(value.databaseValue))
        }

        /// Adds the name of a table or column, quoted so that it can be nothing but a name.
        public mutating func appendInterpolation(identifier: String) {
            pieces.append(.text(SQL.quoted(column: identifier)))
        }

        /// Adds a name as the schema has it, byte by byte, quoted so that it can be nothing but a name.
        package mutating func appendInterpolation(_ name: SchemaName) {
            pieces.append(.name(name.quoted))
        }

        /// Adds another piece of SQL with its values.
        public mutating func appendInterpolation(_ sql: SQL) {
            pieces += sql.pieces
        }
    }

    /// A name in double quotes, with inner quotes doubled, for a place where only a name can stand: after FROM, in a
    /// definition.
    ///
    /// Source: SQLite, "SQLite Keywords".
    package static func quoted(identifier: String) -> String { quoted(identifier, by: "\"") }

    /// A name in backticks, with inner ones doubled, for a column in an expression.
    ///
    /// In double quotes, a name that no column has would be a string. Source: SQLite, "Double-quoted String Literals Are
    /// Accepted".
    package static func quoted(column: String) -> String { quoted(column, by: "`") }

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

extension Sequence<SQL> {
    /// The pieces of SQL, one after the other, with a separator between them.
    package func joined(by separator: StaticString) -> SQL {
        var pieces: ContiguousArray<SQL.Piece> = []
        for sql in self {
            if !pieces.isEmpty { pieces.append(.literal(separator)) }
            pieces += sql.pieces
        }
        return SQL(pieces: pieces)
    }
}

extension SQL: Equatable {
    /// Whether text and values are the same.
    public static func == (left: SQL, right: SQL) -> Bool { left.bytes == right.bytes && left.values == right.values }
}

extension SQL.Piece {
    /// What it adds to the text.
    var text: String {
        switch self {
        case .literal(let text): text.description
        case .text(let text): text
        case .name(let name): String(decoding: name, as: UTF8.self)
        case .parameter: "?"
        case .argument: ""
        }
    }

    var value: Value? {
        switch self {
        case .literal, .text, .name: nil
        case .parameter(let value), .argument(let value): value
        }
    }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    /// Takes these bytes away from its begin; `false` where it begins otherwise.
    fileprivate mutating func takeAway(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count <= count else { return false }
        guard let start = bytes.baseAddress, let here = base.baseAddress else { return bytes.isEmpty }
        guard memcmp(start, here + startIndex, bytes.count) == 0 else { return false }
        removeFirst(bytes.count)
        return true
    }
}
