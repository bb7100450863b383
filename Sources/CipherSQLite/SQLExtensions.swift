internal import CipherErrors

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

    /// The same extensions with versions for all of Unicode of `lower` and `upper`, of NOCASE, and of all three; none if
    /// the app has its own versions.
    ///
    /// SQLite's own versions change only ASCII letters, so some apps and systems replace them, such as Android. An index
    /// that was built with other versions seems damaged to SQLite. Source: SQLite, "Built-In Scalar SQL Functions", and
    /// the README of its ICU extension.
    package var unicodeCases: [Self] {
        let names = Set(functions.map(\.name) + collations.map(\.name)).map { $0.lowercased() }
        guard !names.contains(where: ["lower", "upper", "nocase"].contains) else { return [] }
        func function(_ name: String, _ change: @escaping @Sendable (String) -> String) -> SQLFunction {
            SQLFunction(name, argumentCount: 1) { arguments in
                switch arguments[0] {
                case .null: .null
                case .text(let text): .text(change(text))
                case .blob(let bytes): String(utf8: bytes).map { .text(change($0)) } ?? .blob(bytes)
                case .integer(let number): .text(String(number))
                case .real(let number): .text(change(String(number)))
                }
            }
        }
        /// Bytes that are not UTF-8 are compared as they are, so that damage to them is not overlooked.
        @Sendable func folded(_ text: UnsafeRawBufferPointer) -> [UInt8] {
            String(utf8: text).map { Array($0.lowercased().utf8) } ?? Array(text)
        }
        var (ofFunctions, ofCollation) = (self, self)
        ofFunctions.functions += [function("lower") { $0.lowercased() }, function("upper") { $0.uppercased() }]
        ofCollation.collations.append(
            Collation(name: "NOCASE") { left, right in
                let (left, right) = (folded(left), folded(right))
                return left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
            })
        var ofAll = ofFunctions
        ofAll.collations = ofCollation.collations
        return [ofFunctions, ofCollation, ofAll]
    }

    /// The warning about indexes that match the rows only with one of ``unicodeCases``.
    package static let unicodeCaseWarning =
        "indexes of this database were built with another lower(), upper() or NOCASE than SQLite's own, which change only "
        + "ASCII letters: register the app's versions as functions and collations wherever the database is opened"

    /// The warning about rebuilt indexes if none of ``unicodeCases`` matches the rows.
    package static let rebuiltWithOwnCase =
        "the rebuilt indexes contain the results of SQLite's own lower(), upper() and NOCASE, which change only ASCII "
        + "letters; if the app registers other versions, run REINDEX with them"
}

extension Connection {
    /// Returns whether the schema may use one of the functions that ``SQLExtensions/unicodeCases`` replace.
    package func mayFoldCaseInSchema() throws -> Bool {
        try exists(
            "SELECT 1 FROM sqlite_master WHERE sql LIKE '%lower%' OR sql LIKE '%upper%' OR sql LIKE '%nocase%'")
    }

    /// Registers all extensions.
    func register(_ extensions: SQLExtensions) throws {
        for collation in extensions.collations { try register(collation) }
        for function in extensions.functions { try register(function) }
        for tokenizer in extensions.tokenizers { try register(tokenizer) }
    }
}
