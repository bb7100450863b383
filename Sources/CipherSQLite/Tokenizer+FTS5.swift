internal import CCipherEngine

extension Connection {
    /// Registers a tokenizer for FTS5, if the engine has it.
    func registerForFTS5(_ tokenizer: Tokenizer) throws {
        var interface: UnsafeMutablePointer<fts5_api>?
        try check(cs_fts5_interface(handle, &interface))
        guard let interface, let create = interface.pointee.xCreateTokenizer else { return }
        var functions = TableTokenizer.functions
        let registration = Unmanaged.passRetained(Registration(tokenizer))
        let result = create(interface, tokenizer.name, registration.toOpaque(), &functions) { context in
            context.map { Unmanaged<Registration>.fromOpaque($0).release() }
        }
        if result != SQLITE_OK { registration.release() }
        try check(result)
    }
}

private final class Registration {
    let tokenizer: Tokenizer

    init(_ tokenizer: Tokenizer) { self.tokenizer = tokenizer }
}

/// The tokenizer of one table.
private final class TableTokenizer {
    private let tokenizer: Tokenizer
    private let arguments: [String]

    private init(_ tokenizer: Tokenizer, _ arguments: [String]) {
        self.tokenizer = tokenizer
        self.arguments = arguments
    }

    static let functions = fts5_tokenizer(
        xCreate: { context, arguments, count, made in
            guard let context, let made else { return SQLITE_MISUSE }
            let tokenizer = Unmanaged<Registration>.fromOpaque(context).takeUnretainedValue().tokenizer
            let ofTable = TableTokenizer(tokenizer, Tokenizer.arguments(UnsafePointer(arguments), count))
            made.pointee = OpaquePointer(Unmanaged.passRetained(ofTable).toOpaque())
            return SQLITE_OK
        },
        xDelete: { made in
            guard let made else { return }
            Unmanaged<TableTokenizer>.fromOpaque(UnsafeRawPointer(made)).release()
        },
        xTokenize: { made, context, _, text, count, take in
            guard let made, let take else { return SQLITE_MISUSE }
            let ofTable = Unmanaged<TableTokenizer>.fromOpaque(UnsafeRawPointer(made)).takeUnretainedValue()
            guard let tokens = ofTable.tokenizer.tokens(text, Int(count), ofTable.arguments) else {
                return SQLITE_MISUSE
            }
            for token in tokens {
                let result = token.term.withBytes { term in
                    term.withMemoryRebound(to: CChar.self) {
                        take(
                            context, token.isSynonym ? FTS5_TOKEN_COLOCATED : 0, $0.baseAddress,
                            Int32(clamping: $0.count), Int32(token.range.lowerBound), Int32(token.range.upperBound))
                    }
                }
                // FTS5 may not need any more tokens.
                guard result == SQLITE_OK else { return result == SQLITE_DONE ? SQLITE_OK : result }
            }
            return SQLITE_OK
        })
}
