internal import CCipherEngine
package import CipherErrors

extension DatabaseError {
    /// Whether SQLite has no words for what failed.
    ///
    /// So SQLCipher ends the reading of a first page that is not authentic, where its header is readable.
    package var isUnexplained: Bool {
        code == Self.generic && message == String(cString: sqlite3_errstr(SQLITE_ERROR))
    }
}
