internal import CCipherEngine
package import CipherErrors

extension DatabaseError {
    /// Whether SQLite has no words for what failed.
    ///
    /// So SQLCipher ends the reading of a first page that is not authentic, where its header is readable.
    package var isUnexplained: Bool {
        code == Self.generic && message == String(cString: sqlite3_errstr(SQLITE_ERROR))
    }

    /// Whether a text of the schema cannot be parsed, as one of a newer SQLite may be.
    ///
    /// Damaged pages have the same code. What makes the difference is told in the message alone.
    package var isMalformedSchema: Bool {
        code == Self.corrupt && message.hasPrefix("malformed database schema")
    }

    /// Whether a view was to be changed that has no trigger for it.
    ///
    /// Every statement that cannot be compiled has the same code, and which triggers a view has is told by their texts
    /// alone.
    package var isOfViewWithoutTrigger: Bool {
        code == Self.generic && message.hasSuffix("because it is a view")
    }
}
