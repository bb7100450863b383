/// What a schema or a statement names of the app's own, and no one has registered on the connection.
package enum UnregisteredName: Equatable {
    case collation(String)
    case function(String)
    case tokenizer(String)

    /// What it is, with its name.
    package var description: String {
        switch self {
        case .collation(let name): "the collation \(name)"
        case .function(let name): "the function \(name)"
        case .tokenizer(let name): "the tokenizer \(name)"
        }
    }

    /// Where it is registered, as the options of a conversion call it too.
    package var advice: String {
        switch self {
        case .collation: "add the app's own to the configuration's collations"
        case .function: "add the app's own to the configuration's functions"
        case .tokenizer: "add the app's own to the configuration's tokenizers"
        }
    }

    /// What a caller is told of whom it is kept from its work.
    package var code: StoreError.Code {
        switch self {
        case .collation: .missingCollation
        case .function: .missingFunction
        case .tokenizer: .missingTokenizer
        }
    }
}

extension DatabaseError {
    /// What a statement could not be compiled without, where it is that.
    ///
    /// Only the message names it: the code is that of every statement that cannot be compiled. `sqlite3_error_offset`, which
    /// came with SQLite 3.38, leads into the statement, and the name may stand in a text of the schema.
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
