internal import CCipherEngine

extension String {
    /// Returns whether the string matches a pattern of SQL's LIKE, ignoring the case of ASCII letters.
    ///
    /// The corresponding C function is `sqlite3_strlike`, which, like SQLite's parser, reads up to the first NUL.
    package func isLike(_ pattern: String) -> Bool { sqlite3_strlike(pattern, self, 0) == 0 }
}
