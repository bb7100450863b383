/// A tokenizer that an app registers under a name and its full-text tables use, of FTS3, FTS4 and FTS5.
///
/// ```swift
/// Tokenizer("words") { text, _ in
///     var tokens: [Tokenizer.Token] = []
///     var start = 0
///     for word in text.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false) {
///         if !word.isEmpty {
///             // A text need not be valid UTF-8: what is not is replaced, here and in the search alike.
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
        /// The term by which the text is found, as the index holds it: folded, or cut to its stem.
        public var term: String
        /// Where the term stands in the text, as offsets in bytes.
        public var range: Range<Int>
        /// Whether it stands at the same place as the token before it.
        ///
        /// FTS3 and FTS4 know no such token, and it is left out.
        public var isSynonym: Bool

        /// A term with its place.
        public init(_ term: String, at range: Range<Int>, isSynonym: Bool = false) {
            self.term = term
            self.range = range
            self.isSynonym = isSynonym
        }
    }

    /// The name in the schema, after `tokenize=`.
    public let name: String
    /// Gives the tokens of a text in their order.
    public let tokens: @Sendable (_ text: UnsafeRawBufferPointer, _ arguments: [String]) -> [Token]

    /// A tokenizer, which must be the one that the database's full-text indexes were filled with.
    ///
    /// A statement that meets a term without a byte, or a range beyond the text, fails with `SQLITE_MISUSE`.
    ///
    /// - Parameter tokens: Is given a text as UTF-8, a row's or that of a query, and what the schema says after the name.
    public init(
        _ name: String,
        tokens: @escaping @Sendable (_ text: UnsafeRawBufferPointer, _ arguments: [String]) -> [Token]
    ) {
        self.name = name
        self.tokens = tokens
    }
}

extension Connection {
    /// Registers a tokenizer for the full-text tables of this connection: of FTS3, FTS4 and FTS5, where the engine has them.
    ///
    /// The corresponding C interfaces are `fts3_tokenizer` and `fts5_api`.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISUSE` on a connection that is closed or lent to a closure, and for a name
    ///   that is empty or has a NUL character.
    public func register(_ tokenizer: Tokenizer) throws {
        try checkRegistration(of: tokenizer.name)
        try registerForFTS3(tokenizer)
        try registerForFTS5(tokenizer)
    }
}

extension Tokenizer {
    /// The tokens of a text; `nil` if one of them cannot be.
    ///
    /// SQLite marks up and cuts texts by the ranges, and does not look whether they are within.
    func tokens(_ start: UnsafePointer<CChar>?, _ count: Int, _ arguments: [String]) -> [Token]? {
        let text = UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
        let tokens = tokens(text, arguments)
        let areWithin = tokens.allSatisfy {
            !$0.term.isEmpty && $0.range.lowerBound >= 0 && $0.range.upperBound <= text.count
        }
        return areWithin ? tokens : nil
    }

    /// What the schema says after the name.
    static func arguments(_ arguments: UnsafePointer<UnsafePointer<CChar>?>?, _ count: Int32) -> [String] {
        (0..<Int(count)).compactMap { arguments?[$0].map { String(cString: $0) } }
    }
}
