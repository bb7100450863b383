/// A collation, function or tokenizer of the app that a schema or a statement uses, but that is not registered on the
/// connection.
package enum UnregisteredName: Equatable {
    case collation(String)
    case function(String)
    case tokenizer(String)

    /// The kind and the name of the unregistered object.
    package var description: String {
        switch self {
        case .collation(let name): "the collation \(name)"
        case .function(let name): "the function \(name)"
        case .tokenizer(let name): "the tokenizer \(name)"
        }
    }

    /// The advice on how to register it; the options of a conversion use the same terms.
    package var advice: String {
        switch self {
        case .collation: "register the collation in the configuration's `collations`"
        case .function: "register the function in the configuration's `functions`"
        case .tokenizer: "register the tokenizer in the configuration's `tokenizers`"
        }
    }

    /// The code of the error that reports the unregistered name.
    package var code: StoreError.Code {
        switch self {
        case .collation: .missingCollation
        case .function: .missingFunction
        case .tokenizer: .missingTokenizer
        }
    }
}

extension DatabaseError {
    /// The unregistered name that prevented a statement from being compiled; `nil` if it failed for another reason.
    ///
    /// Only the message contains the name: the result code is the same for every statement that cannot be compiled.
    /// `sqlite3_error_offset`, added in SQLite 3.38, points into the statement, but the name may occur in the SQL text
    /// of the schema.
    package var unregistered: UnregisteredName? {
        guard code == DatabaseError.generic else { return nil }
        for (prefix, name) in Self.messages where message.hasPrefix(prefix) {
            let end = message.hasSuffix("()") ? 2 : 0
            return name(String(message.dropFirst(prefix.count).dropLast(end)))
        }
        return nil
    }

    private static let messages: [(prefix: String, name: @Sendable (String) -> UnregisteredName)] = [
        ("unknown function: ", { .function($0) }), ("no such function: ", { .function($0) }),
        ("no such collation sequence: ", { .collation($0) }),
        ("unknown tokenizer: ", { .tokenizer($0) }), ("no such tokenizer: ", { .tokenizer($0) }),
    ]
}
