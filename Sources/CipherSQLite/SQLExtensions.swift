/// The extensions that an app adds to SQLite for its schema and its statements.
///
/// They are registered on every connection to the app's file.
package struct SQLExtensions: Sendable {
    package var collations: [Collation]
    package var functions: [SQLFunction]
    package var tokenizers: [Tokenizer]

    package init(collations: [Collation] = [], functions: [SQLFunction] = [], tokenizers: [Tokenizer] = []) {
        self.collations = collations
        self.functions = functions
        self.tokenizers = tokenizers
    }

    /// The same extensions without the functions that an untrusted schema may not call.
    ///
    /// If such a function is registered, SQLite refuses to run anything that names it; otherwise it is treated as a
    /// function that only the app provides.
    var callableBySchema: Self {
        var extensions = self
        extensions.functions.removeAll { !$0.isInnocuous }
        return extensions
    }
}

extension Connection {
    /// Registers all extensions.
    func register(_ extensions: SQLExtensions) throws {
        for collation in extensions.collations { try register(collation) }
        for function in extensions.functions { try register(function) }
        for tokenizer in extensions.tokenizers { try register(tokenizer) }
    }
}
