/// A tokenizer that an app registers under a name for its full-text tables, in FTS3, FTS4 and FTS5.
///
/// ```swift
/// Tokenizer("words") { text, _ in
///     var tokens: [Tokenizer.Token] = []
///     var start = 0
///     for word in text.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false) {
///         if !word.isEmpty {
///             // Text need not be valid UTF-8; invalid bytes are replaced, here as in a search.
///             let term = String(decoding: word, as: UTF8.self).lowercased()
///             tokens.append(Tokenizer.Token(term, at: start..<(start + word.count)))
///         }
///         start += word.count + 1
///     }
///     return tokens
/// }
/// ```
///
/// Sources: SQLite, "FTS3 and FTS4 Extensions", section 8.2, and "FTS5 Extension", section 7.1.
public struct Tokenizer: Sendable {
    /// One term of a text.
    public struct Token: Sendable, Equatable {
        /// The term by which the text is found, as stored in the index: case-folded or reduced to its stem, for
        /// example.
        public var term: String
        /// The position of the term in the text, as byte offsets.
        public var range: Range<Int>
        /// Whether the token is at the same position as the preceding token.
        ///
        /// FTS3 and FTS4 do not support such tokens, so they are left out.
        public var isSynonym: Bool

        /// Creates a token from a term and its position.
        public init(_ term: String, at range: Range<Int>, isSynonym: Bool = false) {
            self.term = term
            self.range = range
            self.isSynonym = isSynonym
        }
    }

    /// The name in the schema, after `tokenize=`.
    public let name: String
    /// A closure that returns the tokens of a text, in order.
    public let tokens: @Sendable (_ text: UnsafeRawBufferPointer, _ arguments: [String]) -> [Token]

    /// Creates a tokenizer, which must be the one with which the database's full-text indexes were filled.
    ///
    /// A statement for which `tokens` returns an empty term or a range outside the text fails with `SQLITE_MISUSE`.
    ///
    /// - Parameter tokens: Called with the text of a row or a query as UTF-8, and with the arguments after the name in
    ///   the schema.
    public init(
        _ name: String,
        tokens: @escaping @Sendable (_ text: UnsafeRawBufferPointer, _ arguments: [String]) -> [Token]
    ) {
        self.name = name
        self.tokens = tokens
    }
}

extension Connection {
    /// Registers a tokenizer for the full-text tables of this connection: FTS3, FTS4 and FTS5, if the engine has them.
    ///
    /// The corresponding C interfaces are `fts3_tokenizer` and `fts5_api`.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISUSE` on a connection that is closed or lent to a closure, and for a
    ///   name that is empty or contains a NUL character.
    public func register(_ tokenizer: Tokenizer) throws {
        try checkRegistration(of: tokenizer.name)
        try registerForFTS3(tokenizer)
        try registerForFTS5(tokenizer)
    }
}

extension Tokenizer {
    /// Returns the tokens of a text; `nil` if one of them is invalid.
    ///
    /// SQLite marks up and cuts texts by these ranges, and does not check whether they are within the text.
    func tokens(_ start: UnsafePointer<CChar>?, _ count: Int, _ arguments: [String]) -> [Token]? {
        let text = UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
        let tokens = tokens(text, arguments)
        let areWithin = tokens.allSatisfy {
            !$0.term.isEmpty && $0.range.lowerBound >= 0 && $0.range.upperBound <= text.count
        }
        return areWithin ? tokens : nil
    }

    /// Returns the arguments after the name in the schema.
    static func arguments(_ arguments: UnsafePointer<UnsafePointer<CChar>?>?, _ count: Int32) -> [String] {
        (0..<Int(count)).compactMap { arguments?[$0].map { String(cString: $0) } }
    }
}
