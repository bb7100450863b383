internal import CCipherEngine
internal import CipherPlatform

extension Connection {
    /// Registers a tokenizer for FTS3 and FTS4, if the engine has them.
    func registerForFTS3(_ tokenizer: Tokenizer) throws {
        let module = FTS3Module(tokenizer)
        // Earlier modules are kept, because a table may be using a module with the same name.
        tokenizers.append(module)
        try check(cs_register_fts3_tokenizer(handle, tokenizer.name, module.pointer))
    }
}

/// A tokenizer in FTS3's form: its functions get no context, but can find their module.
final class FTS3Module {
    fileprivate let pointer = UnsafeMutablePointer<cs_fts3_module>.allocate(capacity: 1)
    fileprivate let tokenizer: Tokenizer

    init(_ tokenizer: Tokenizer) {
        self.tokenizer = tokenizer
        pointer.initialize(to: Self.functions)
        pointer.pointee.object = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit { pointer.deallocate() }

    private static var functions: cs_fts3_module {
        cs_fts3_module(
            version: 0,
            create: { count, arguments, made in
                guard let made else { return SQLITE_MISUSE }
                let list = ArgumentList(Tokenizer.arguments(arguments, count))
                made.pointee = .allocate(capacity: 1)
                made.pointee?.initialize(
                    to: cs_fts3_tokenizer(module: nil, object: Unmanaged.passRetained(list).toOpaque()))
                return SQLITE_OK
            },
            destroy: { tokenizer in
                guard let tokenizer, let list = tokenizer.pointee.object else { return SQLITE_MISUSE }
                Unmanaged<ArgumentList>.fromOpaque(list).release()
                tokenizer.deallocate()
                return SQLITE_OK
            },
            open: { tokenizer, text, count, opened in
                guard let opened, let list = tokenizer?.pointee.object,
                    let module = tokenizer?.pointee.module?.pointee.object
                else { return SQLITE_MISUSE }
                // A text without an explicit length ends with a NUL.
                let count = count < 0 ? text.map { strlen($0) } ?? 0 : Int(count)
                let tokens = Unmanaged<FTS3Module>.fromOpaque(module).takeUnretainedValue().tokenizer
                    .tokens(text, count, Unmanaged<ArgumentList>.fromOpaque(list).takeUnretainedValue().arguments)
                guard let tokens else { return SQLITE_MISUSE }
                let terms = Unmanaged.passRetained(Terms(tokens.filter { !$0.isSynonym }))
                opened.pointee = .allocate(capacity: 1)
                opened.pointee?.initialize(to: cs_fts3_cursor(tokenizer: tokenizer, object: terms.toOpaque()))
                return SQLITE_OK
            },
            close: { cursor in
                guard let cursor, let terms = cursor.pointee.object else { return SQLITE_MISUSE }
                Unmanaged<Terms>.fromOpaque(terms).release()
                cursor.deallocate()
                return SQLITE_OK
            },
            next: { cursor, term, count, start, end, position in
                guard let terms = cursor?.pointee.object else { return SQLITE_MISUSE }
                guard let next = Unmanaged<Terms>.fromOpaque(terms).takeUnretainedValue().next() else {
                    return SQLITE_DONE
                }
                term?.pointee = UnsafePointer(next.term.baseAddress)
                count?.pointee = Int32(clamping: next.term.count)
                start?.pointee = Int32(next.range.lowerBound)
                end?.pointee = Int32(next.range.upperBound)
                position?.pointee = Int32(clamping: next.position)
                return SQLITE_OK
            }, object: nil)
    }
}

/// The arguments after the name of a tokenizer in a schema.
private final class ArgumentList {
    let arguments: [String]

    init(_ arguments: [String]) { self.arguments = arguments }
}

/// The tokens of one text; each one stays in memory until the next one is requested.
private final class Terms {
    private let tokens: [Tokenizer.Token]
    private var position = -1
    private var term = UnsafeMutableBufferPointer<CChar>(start: nil, count: 0)

    init(_ tokens: [Tokenizer.Token]) { self.tokens = tokens }

    deinit { term.deallocate() }

    func next() -> (term: UnsafeMutableBufferPointer<CChar>, range: Range<Int>, position: Int)? {
        position += 1
        guard position < tokens.count else { return nil }
        term.deallocate()
        let bytes = tokens[position].term.utf8.map { CChar(bitPattern: $0) }
        term = .allocate(capacity: bytes.count)
        _ = term.initialize(from: bytes)
        return (term, tokens[position].range, position)
    }
}
