internal import CCipherEngine
package import CipherErrors

extension DatabaseError {
    static let notAuthentic = "a page is not authentic"

    /// Whether SQLCipher rejected a page.
    package var isNotAuthentic: Bool { code == Self.corrupt && message == Self.notAuthentic }

    private static var noExplanation: String { String(cString: sqlite3_errstr(SQLITE_ERROR)) }

    /// Returns the error that ``inEncryptedDatabase`` took for a rejected page.
    static func unexplained(_ error: DatabaseError) -> DatabaseError {
        DatabaseError(extendedCode: generic, message: noExplanation, sql: error.sql, path: error.path)
    }

    /// Returns the error that a failure on an encrypted database means.
    ///
    /// SQLCipher rejects a page, and every page after it, with SQLite's code for errors in SQL and no explanation.
    var inEncryptedDatabase: DatabaseError {
        guard code == Self.generic, message == Self.noExplanation else { return self }
        return DatabaseError(extendedCode: Self.corrupt, message: Self.notAuthentic, sql: sql, path: path)
    }

    /// Whether SQL in the schema cannot be parsed, for example because a newer SQLite wrote it.
    ///
    /// Damaged pages cause the same code. Only the message shows the difference.
    package var isMalformedSchema: Bool {
        code == Self.corrupt && message.hasPrefix("malformed database schema")
    }

    /// The name of the schema object whose definition SQLite does not accept.
    package var malformedObject: String? {
        guard isMalformedSchema, let start = message.firstIndex(of: "(") else { return nil }
        let end = message.firstRange(of: ") - ")?.lowerBound ?? message.lastIndex(of: ")")
        return end.map { String(message[message.index(after: start)..<$0]) }
    }

    /// Whether a full-text table cannot be opened for a reason in its definition, which says nothing about the file: a
    /// tokenizer that is not registered, or an option of a newer SQLite.
    ///
    /// Source: SQLite's source code, `fts5ConfigParseSpecial` in ext/fts5/fts5_config.c and `fts3InitVtab` in
    /// ext/fts3/fts3.c.
    package var isOfTextDefinition: Bool {
        if case .tokenizer = unregistered { return true }
        return code == Self.generic
            && ["unrecognized option: ", "unrecognized parameter: "].contains(where: message.hasPrefix)
    }

    /// Whether the statement would change a view that has no trigger for such a change.
    ///
    /// Every statement that cannot be compiled has the same code, and only the SQL of the triggers shows which triggers
    /// a view has.
    package var isOfViewWithoutTrigger: Bool {
        code == Self.generic && message.hasSuffix("because it is a view")
    }
}
