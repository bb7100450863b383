public import CipherPlatform

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
    /// The text is assembled only when it is compiled; in a loop, the compiled statement is found by its pieces.
    @usableFromInline var pieces: ContiguousArray<Piece>

    @usableFromInline enum Piece: Sendable {
        /// Text in the program's source.
        case literal(StaticString)
        /// Text created at run time, such as a quoted name.
        case text(String)
        /// The quoted name of something in a schema, which need not be Unicode.
        case name([UInt8])
        /// A value, which is `?` in the text.
        case parameter(Value)
        /// A date, which is `?` in the text and is bound in the form that the connection determines.
        case date(Date)
        case uuid(UUID)
        /// A value whose `?` is in an earlier text.
        case argument(Value)
        /// The reason that the SQL must not be run.
        case refusal(StaticString)
    }

    /// The text, with `?` for each bound value.
    ///
    /// It is meant for people: a name from a schema that is not valid UTF-8 appears with replacement characters, but
    /// SQLite gets its exact bytes.
    public var text: String {
        pieces.reduce(into: "") { $0 += $1.text }
    }

    /// The bytes that SQLite compiles.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        for piece in pieces {
            switch piece {
            case .literal(let text): text.withUTF8Buffer { bytes.append(contentsOf: $0) }
            case .text(let text): bytes.append(contentsOf: text.utf8)
            case .name(let name): bytes.append(contentsOf: name)
            case .parameter, .date, .uuid: bytes.append(UInt8(ascii: "?"))
            case .argument, .refusal: break
            }
        }
        return bytes
    }

    /// The bound values, in order; dates and UUIDs in the forms of ``ColumnForms/init(dates:uuids:)``.
    public var values: [Value] { pieces.compactMap(\.value) }

    fileprivate init(pieces: ContiguousArray<Piece>) {
        self.pieces = pieces
    }

    /// Creates SQL from text as it is, with values for its `?` parameters, in order.
    public init(text: String, values: [Value] = []) {
        pieces = []
        pieces.reserveCapacity(values.count + 1)
        pieces.append(.text(text))
        for value in values { pieces.append(.argument(value)) }
    }

    /// Creates SQL from bytes in a file's schema, which need not be UTF-8.
    package init(bytes: [UInt8]) { pieces = [.name(bytes)] }

    /// Creates SQL from text without parameters.
    @inlinable
    public init(stringLiteral value: StaticString) {
        pieces = [.literal(value)]
    }

    /// Creates SQL from text with bound interpolations.
    @inlinable
    public init(stringInterpolation: Interpolation) {
        pieces = stringInterpolation.pieces
    }

    /// The length of the text in bytes.
    var length: Int {
        pieces.reduce(0) { length, piece in
            switch piece {
            case .literal(let text): length + text.utf8CodeUnitCount
            case .text(let text): length + text.utf8.count
            case .name(let name): length + name.count
            case .parameter, .date, .uuid: length + 1
            case .argument, .refusal: length
            }
        }
    }

    /// Returns whether the text consists of these bytes.
    ///
    /// The comparison is by byte, because `String` compares by canonical equivalence, which treats é as one scalar and
    /// é as two scalars as equal; for SQLite they differ.
    func isSpelled(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var rest = bytes[...]
        for piece in pieces {
            let isNext =
                switch piece {
                case .literal(let text): text.withUTF8Buffer { rest.takeAway($0) }
                case .text(let text): text.withBytes { rest.takeAway($0) }
                case .name(let name): name.withUnsafeBufferPointer { rest.takeAway($0) }
                case .parameter, .date, .uuid: rest.popFirst() == UInt8(ascii: "?")
                case .argument: true
                case .refusal: false
                }
            guard isNext else { return false }
        }
        return rest.isEmpty
    }

    /// The same SQL, with NULL for each value.
    var withoutValues: SQL {
        SQL(
            pieces: ContiguousArray(
                pieces.map { piece in
                    switch piece {
                    case .literal, .text, .name, .refusal: piece
                    case .parameter, .date, .uuid: SQL.Piece.parameter(.null)
                    case .argument: SQL.Piece.argument(.null)
                    }
                }))
    }

    /// Returns whether the literals of both are at the same addresses in memory, with only values between them.
    ///
    /// If so, the texts are equal.
    func isMade(ofThePiecesOf other: SQL) -> Bool {
        guard pieces.count == other.pieces.count else { return false }
        for index in pieces.indices {
            if case .literal(let mine) = pieces[index] {
                guard case .literal(let other) = other.pieces[index], mine.isSameMemory(other) else { return false }
            } else {
                guard pieces[index].isParameter, other.pieces[index].isParameter else { return false }
            }
        }
        return true
    }

    /// The reason that the SQL must not be run; `nil` if it may be run.
    var refusal: String? {
        for case .refusal(let reason) in pieces { return reason.description }
        return nil
    }

    /// Collects the pieces of an interpolated literal.
    public struct Interpolation: StringInterpolationProtocol {
        @usableFromInline var pieces: ContiguousArray<Piece> = []
        /// Whether the latest piece is an array of bytes as the first value of a list after IN.
        @usableFromInline var hasBlobInList = false

        /// Reserves room for the literal parts.
        @inlinable
        public init(literalCapacity: Int, interpolationCount: Int) {
            pieces.reserveCapacity(2 * interpolationCount + 1)
        }

        /// Adds literal SQL.
        @inlinable
        public mutating func appendLiteral(_ literal: StaticString) {
            pieces.append(.literal(literal))
            if hasBlobInList { refuseBlobInList(literal) }
        }

        /// Binds a value.
        @inlinable
        public mutating func appendInterpolation(_ value: some Bindable) {
            pieces.append(Piece(value))
        }

        /// Binds a value, or NULL for `nil`.
        @inlinable
        public mutating func appendInterpolation<Wrapped: Bindable>(_ value: Wrapped?) {
            pieces.append(value.map { Piece($0) } ?? .parameter(.null))
        }

        /// Binds the bytes as one blob.
        ///
        /// If the bytes are the only value of a list, as in `IN (\(bytes))`, the SQL is refused when it is run, because
        /// a list of numbers or a comparison with `=` was intended.
        public mutating func appendInterpolation(_ value: [UInt8]) {
            if case .literal(let text) = pieces.last { hasBlobInList = text.opensList }
            pieces.append(.parameter(.blob(value)))
        }

        /// Binds each of the values, separated by commas, for the parentheses after IN.
        ///
        /// ```swift
        /// try db.rows(Message.self, "SELECT * FROM chat WHERE id IN (\(list: ids))")
        /// ```
        ///
        /// Without values the list is empty, and no value matches it. The engine limits the number of values: to 999
        /// before SQLite 3.32, and to 32,766 since then.
        ///
        /// Source: SQLite, "The IN and NOT IN operators" and "Limits In SQLite".
        public mutating func appendInterpolation(list values: some Sequence<some Bindable>) {
            var isFirst = true
            for value in values {
                if !isFirst { pieces.append(.literal(", ")) }
                isFirst = false
                pieces.append(Piece(value))
            }
        }

        @usableFromInline
        mutating func refuseBlobInList(_ literal: StaticString) {
            hasBlobInList = false
            guard literal.withUTF8Buffer({ $0.first { !$0.isSpace } }) == UInt8(ascii: ")") else { return }
            pieces.append(
                .refusal(
                    """
                    an array of bytes is one blob, so the list after IN has only one value; interpolate (list: values) \
                    for a list, or compare with = for a blob
                    """))
        }

        /// Adds the name of a table or column, quoted so that it can only be a name.
        public mutating func appendInterpolation(identifier: String) {
            pieces.append(.text(SQL.quoted(column: identifier)))
        }

        /// Adds a name exactly as the schema stores it, quoted so that it can only be a name.
        package mutating func appendInterpolation(_ name: SchemaName) {
            pieces.append(.name(name.quoted))
        }

        /// Adds another piece of SQL with its values.
        public mutating func appendInterpolation(_ sql: SQL) {
            pieces += sql.pieces
        }
    }

    /// Returns a name in double quotes, with inner quotes doubled, for a place where only a name is possible: after
    /// FROM, or in a definition.
    ///
    /// Source: SQLite, "SQLite Keywords".
    package static func quoted(identifier: String) -> String { quoted(identifier, by: "\"") }

    /// Returns a name in backticks, with inner backticks doubled, for a column in an expression.
    ///
    /// In double quotes, a name that is not a column's would be a string. Source: SQLite, "Double-quoted String
    /// Literals Are Accepted".
    package static func quoted(column: String) -> String { quoted(column, by: "`") }

    /// Returns text in single quotes, for the few statements that take no parameters, such as PRAGMA and ATTACH.
    package static func quoted(text: String) -> String { quoted(text, by: "'") }

    /// Quotes by scalar, not by character: a quote followed by a combining mark is one character, but SQLite still
    /// treats the quote as a quote.
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
    /// Returns the pieces of SQL, one after the other, with a separator between them.
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
    /// Returns whether the texts and the values are equal.
    public static func == (left: SQL, right: SQL) -> Bool { left.bytes == right.bytes && left.values == right.values }
}

extension SQL.Piece {
    /// The text that the piece adds.
    var text: String {
        switch self {
        case .literal(let text): text.description
        case .text(let text): text
        case .name(let name): String(decoding: name, as: UTF8.self)
        case .parameter, .date, .uuid: "?"
        case .argument, .refusal: ""
        }
    }

    /// The value that the piece binds, without regard to the forms of a connection; `nil` if it binds none.
    fileprivate var value: Value? {
        switch self {
        case .literal, .text, .name, .refusal: nil
        case .parameter(let value), .argument(let value): value
        case .date(let date): date.databaseValue
        case .uuid(let uuid): uuid.databaseValue
        }
    }

    /// Creates a piece that binds a value.
    @inlinable
    init(_ value: some Bindable) {
        // If the type is known, the compiler resolves these checks.
        if let date = value as? Date {
            self = .date(date)
        } else if let uuid = value as? UUID {
            self = .uuid(uuid)
        } else {
            self = .parameter(value.databaseValue)
        }
    }
}

// Values that cannot be bound, with advice on what to write instead. Without these declarations, the compiler's errors
// would not explain that.
extension SQL.Interpolation {
    /// Unavailable, because SQLite's integers are signed.
    @available(
        *, unavailable, message: "bind Int64(value), which traps if the value does not fit, or Int64(bitPattern: value)"
    )
    @_disfavoredOverload
    public mutating func appendInterpolation(_ value: UInt64) {}

    /// Unavailable, because SQLite's integers are signed.
    @available(
        *, unavailable, message: "bind Int64(value), which traps if the value does not fit, or Int64(bitPattern: value)"
    )
    @_disfavoredOverload
    public mutating func appendInterpolation(_ value: UInt) {}

    /// Unavailable, because an enumeration is bound by its raw value.
    @available(*, unavailable, message: "bind the rawValue, or make the type Bindable")
    @_disfavoredOverload
    public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value) {}

    /// Unavailable, because an enumeration is bound by its raw value.
    @available(*, unavailable, message: "bind the rawValue, or make the type Bindable")
    @_disfavoredOverload
    public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value?) {}

    /// Unavailable, because the values of a list are bound one by one.
    @available(*, unavailable, message: "interpolate (list: values) between the parentheses of IN (…)")
    @_disfavoredOverload
    public mutating func appendInterpolation<Values: Collection>(_ values: Values) {}

    /// Unavailable, because the value to bind is unknown.
    @available(*, unavailable, message: "bind a number, text, Data, Date or UUID, or make the type Bindable")
    @_disfavoredOverload
    public mutating func appendInterpolation<Value>(_ value: Value) {}
}

extension SQL.Piece {
    /// Whether the piece is `?` in the text.
    var isParameter: Bool {
        switch self {
        case .parameter, .date, .uuid: true
        case .literal, .text, .name, .argument, .refusal: false
        }
    }
}

extension StaticString {
    /// Returns whether the bytes of both are at the same address.
    fileprivate func isSameMemory(_ other: StaticString) -> Bool {
        hasPointerRepresentation && other.hasPointerRepresentation && utf8Start == other.utf8Start
            && utf8CodeUnitCount == other.utf8CodeUnitCount
    }

    /// Whether the text ends with IN and an opening parenthesis.
    fileprivate var opensList: Bool {
        withUTF8Buffer { bytes in
            var rest = bytes[...]
            func dropSpaces() { while let last = rest.last, last.isSpace { rest.removeLast() } }
            dropSpaces()
            guard rest.popLast() == UInt8(ascii: "(") else { return false }
            dropSpaces()
            guard let n = rest.popLast(), n | 0x20 == UInt8(ascii: "n"), let i = rest.popLast(),
                i | 0x20 == UInt8(ascii: "i")
            else { return false }
            return rest.last.map(\.isSpace) ?? true
        }
    }
}

extension UInt8 {
    /// Whether SQLite's tokenizer treats the byte as white space.
    var isSpace: Bool { self == 0x20 || (0x09...0x0d).contains(self) }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    /// Removes these bytes from the beginning; returns `false` if the slice begins differently.
    fileprivate mutating func takeAway(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count <= count else { return false }
        guard let start = bytes.baseAddress, let here = base.baseAddress else { return bytes.isEmpty }
        guard memcmp(start, here + startIndex, bytes.count) == 0 else { return false }
        removeFirst(bytes.count)
        return true
    }
}
