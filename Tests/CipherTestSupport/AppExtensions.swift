public import CipherSQLite

/// The functions and tokenizers that the tests' app registers for its schema.
public enum AppExtensions {
    /// `app_hash(x)`: the sum of the bytes of a text.
    public static let hash = SQLFunction("app_hash", argumentCount: 1) { arguments in
        guard case .text(let text) = arguments[0] else { return .null }
        return .integer(text.utf8.reduce(0) { $0 + Int64($1) })
    }

    /// `words`: splits at spaces, or at the first byte of its argument, and converts to lower case.
    public static let words = Tokenizer("words") { text, arguments in
        let separator = arguments.first?.utf8.first ?? UInt8(ascii: " ")
        var tokens: [Tokenizer.Token] = []
        for word in text.split(separator: separator) {
            let term = String(decoding: word, as: UTF8.self)
            tokens.append(Tokenizer.Token(term.lowercased(), at: word.startIndex..<word.endIndex))
        }
        return tokens
    }

    /// The newest full-text module that the engine has.
    public static var module: String { Engine.current.wasBuilt(with: "ENABLE_FTS5") ? "fts5" : "fts4" }
}
