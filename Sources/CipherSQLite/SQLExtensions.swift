/// What an app adds to SQLite for its schema and its statements: registered on every connection to its file.
package struct SQLExtensions: Sendable {
    package var collations: [Collation]
    package var functions: [SQLFunction]
    package var tokenizers: [Tokenizer]

    package init(collations: [Collation] = [], functions: [SQLFunction] = [], tokenizers: [Tokenizer] = []) {
        self.collations = collations
        self.functions = functions
        self.tokenizers = tokenizers
    }

    /// The same without the functions that no schema may call unless somebody has vouched for it.
    ///
    /// With such a function SQLite refuses what names it; without, it is a function that only the app has.
    var callableBySchema: Self {
        var extensions = self
        extensions.functions.removeAll { !$0.isInnocuous }
        return extensions
    }
}

extension Connection {
    /// Registers all of them.
    func register(_ extensions: SQLExtensions) throws {
        for collation in extensions.collations { try register(collation) }
        for function in extensions.functions { try register(function) }
        for tokenizer in extensions.tokenizers { try register(tokenizer) }
    }
}
