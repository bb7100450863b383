internal import CCipherEngine
package import CipherErrors

extension DatabaseError {
    /// Whether SQLite provides no explanation of the failure.
    ///
    /// This is how SQLCipher reports a first page that is not authentic if its header is readable.
    package var isUnexplained: Bool {
        code == Self.generic && message == String(cString: sqlite3_errstr(SQLITE_ERROR))
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

    /// Whether the statement would change a view that has no trigger for such a change.
    ///
    /// Every statement that cannot be compiled has the same code, and only the SQL of the triggers shows which triggers
    /// a view has.
    package var isOfViewWithoutTrigger: Bool {
        code == Self.generic && message.hasSuffix("because it is a view")
    }
}
