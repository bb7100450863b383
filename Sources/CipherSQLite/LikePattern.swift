internal import CCipherEngine

extension String {
    /// Whether it matches a pattern of SQL's LIKE, ASCII letters without regard to case.
    ///
    /// The corresponding C function is `sqlite3_strlike`, which like SQLite's parser reads up to the first NUL.
    package func isLike(_ pattern: String) -> Bool { sqlite3_strlike(pattern, self, 0) == 0 }
}
