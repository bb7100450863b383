internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// An app's own tokenizers, in each full-text module that the engine has.
struct TokenizerTests {
    static let modules = ["fts3", "fts4"] + (Engine.current.wasBuilt(with: "ENABLE_FTS5") ? ["fts5"] : [])

    private static func clause(_ module: String, _ tokenizer: String, _ argument: String = "") -> String {
        module == "fts5" ? "tokenize=\"\(tokenizer) \(argument)\"" : "tokenize=\(tokenizer) \(argument)"
    }

    private static func table(
        _ module: String, _ tokenizer: Tokenizer, argument: String = "", rows: [String] = []
    ) throws -> Connection {
        let connection = try Connection(inMemoryWith: [], tokenizers: [tokenizer])
        try connection.execute(
            SQL(text: "CREATE VIRTUAL TABLE f USING \(module)(body, \(clause(module, tokenizer.name, argument)))"))
        for row in rows { try connection.execute("INSERT INTO f VALUES (\(row))") }
        return connection
    }

    @Test("A full-text table finds rows by the tokens of the app's tokenizer", arguments: modules)
    func finds(module: String) throws {
        let connection = try Self.table(module, AppExtensions.words, rows: ["Don't PANIC", "Größe 42", ""])
        let found = try connection.values(Int.self, "SELECT rowid FROM f WHERE f MATCH 'panic'")
        #expect(found == [1])
        #expect(try connection.values(Int.self, "SELECT rowid FROM f WHERE f MATCH 'größe'") == [2])
        #expect(try connection.values(Int.self, "SELECT rowid FROM f WHERE f MATCH 'don'") == [])
    }

    @Test("A tokenizer receives the arguments that follow its name in the schema", arguments: modules)
    func arguments(module: String) throws {
        let connection = try Self.table(module, AppExtensions.words, argument: "x", rows: ["a bxc d"])
        #expect(try connection.values(Int.self, "SELECT rowid FROM f WHERE f MATCH 'c'") == [])
        try connection.execute("INSERT INTO f VALUES ('wxy')")
        #expect(try connection.values(Int.self, "SELECT rowid FROM f WHERE f MATCH 'y'") == [2])
    }

    @Test("A match is marked up at the byte range of its token", arguments: modules)
    func ranges(module: String) throws {
        let connection = try Self.table(module, AppExtensions.words, rows: ["é größe é"])
        let marked: SQL =
            module == "fts5"
            ? "SELECT highlight(f, 0, '[', ']') FROM f WHERE f MATCH 'größe'"
            : "SELECT snippet(f, '[', ']') FROM f WHERE f MATCH 'größe'"
        #expect(try connection.values(String.self, marked) == ["é [größe] é"])
    }

    @Test("A synonym is found at the position of its token", .enabled(if: modules.contains("fts5")))
    func synonyms() throws {
        let tokenizer = Tokenizer("doubled") { text, arguments in
            AppExtensions.words.tokens(text, arguments).flatMap {
                [$0, Tokenizer.Token($0.term + "s", at: $0.range, isSynonym: true)]
            }
        }
        let connection = try Self.table("fts5", tokenizer, rows: ["two word"])
        #expect(try connection.values(Int.self, "SELECT rowid FROM f WHERE f MATCH '\"two words\"'") == [1])
        let old = try Self.table("fts4", tokenizer, rows: ["two word"])
        #expect(try old.values(Int.self, "SELECT rowid FROM f WHERE f MATCH '\"two word\"'") == [1])
    }

    @Test("An empty token or one beyond the text fails the statement, which adds no row", arguments: modules)
    func impossible(module: String) throws {
        for (term, range) in [("x", 0..<4), ("x", -1..<2), ("", 0..<1)] {
            let token = Tokenizer.Token(term, at: range)
            let connection = try Self.table(module, Tokenizer("wrong") { _, _ in [token] })
            let error = try databaseError { try connection.execute("INSERT INTO f VALUES ('abc')") }
            #expect(error.code == DatabaseError.misuse, "\(error)")
            #expect(try connection.values(Int.self, "SELECT rowid FROM f") == [])
        }
    }

    @Test("A tokenizer replaces another one with the same name, for tables created later", arguments: modules)
    func replaced(module: String) throws {
        let connection = try Self.table(module, AppExtensions.words, rows: ["a-b"])
        try connection.register(
            Tokenizer("words") { text, _ in AppExtensions.words.tokens(text, ["-"]) })
        try connection.execute(
            SQL(text: "CREATE VIRTUAL TABLE g USING \(module)(body, \(Self.clause(module, "words")))"))
        try connection.execute("INSERT INTO g VALUES ('a-b')")
        try connection.execute("INSERT INTO f VALUES ('c-d')")
        #expect(try connection.values(Int.self, "SELECT rowid FROM g WHERE g MATCH 'b'") == [1])
        #expect(try connection.values(Int.self, "SELECT rowid FROM f WHERE f MATCH 'd'") == [])
    }

    @Test("A table whose tokenizer is not registered is refused with the tokenizer's name", arguments: modules)
    func absent(module: String) throws {
        let connection = try Connection(inMemoryWith: [])
        let error = try databaseError {
            try connection.execute(
                SQL(text: "CREATE VIRTUAL TABLE f USING \(module)(body, \(Self.clause(module, "words")))"))
        }
        #expect(error.unregistered == .tokenizer("words"), "\(error)")
        #expect(StoreError(error, path: "app.db", during: .use).code == .missingTokenizer)
    }

    @Test(
        "A tokenizer with an invalid name is refused, and so is one for a lent or closed connection",
        arguments: ["", "a\u{0}b"])
    func names(name: String) throws {
        let connection = try Connection(inMemoryWith: [])
        let error = try databaseError { try connection.register(Tokenizer(name) { _, _ in [] }) }
        #expect(error.code == DatabaseError.misuse && error.message.contains("name"))
        let lent = try databaseError {
            try connection.transaction { try connection.lend { try $0.register(AppExtensions.words) } }
        }
        #expect(lent.code == DatabaseError.misuse)
        connection.close()
        #expect(try databaseError { try connection.register(AppExtensions.words) }.code == DatabaseError.misuse)
    }

    @Test("SQL cannot register a tokenizer: only the registered address is accepted", arguments: ["fts4"])
    func closed(module: String) throws {
        let connection = try Self.table(module, AppExtensions.words)
        let error = try databaseError {
            try connection.execute("SELECT fts3_tokenizer('evil', x'0102030405060708')")
        }
        #expect(error.code == DatabaseError.generic, "\(error)")
    }
}
