/// A kind of index, its table, and how its entries are reached: as a table over its b-tree.
struct IndexKind {
    let name: String
    let table: String
    /// The definition of the index; empty for an index that SQLite creates itself.
    var index = ""
    /// The columns of an entry.
    var columns = ["a", "r"]
    /// The order of the columns in the b-tree.
    var key = "a, r"
    /// An entry without a row, and an entry that replaces the entry of row 7.
    var stranger = "'zz', 99999"
    var wrong = "'k7x', 7"
    /// The same table and index without UNIQUE, if the index is unique.
    var loose: (table: String, index: String)?

    var isAutomatic: Bool { index.isEmpty }
    var indexName: String { isAutomatic ? "sqlite_autoindex_t_1" : "i" }

    /// The order of entries that are descending in their first column.
    var reversedKey: String {
        var parts = key.split(separator: ", ").map(String.init)
        parts[0] = parts[0].hasSuffix(" DESC") ? String(parts[0].dropLast(5)) : parts[0] + " DESC"
        return parts.joined(separator: ", ")
    }

    static let all = [
        IndexKind(
            name: "two columns", table: "CREATE TABLE t(a TEXT, b)", index: "CREATE INDEX i ON t(b, a)",
            columns: ["b", "a", "r"], key: "b, a, r", stranger: "3, 'zz', 99999", wrong: "8, 'k7', 7"),
        IndexKind(
            name: "DESC", table: "CREATE TABLE t(a TEXT, b)", index: "CREATE INDEX i ON t(a DESC)", key: "a DESC, r"),
        IndexKind(
            name: "COLLATE NOCASE", table: "CREATE TABLE t(a TEXT, b)", index: "CREATE INDEX i ON t(a COLLATE NOCASE)",
            key: "a COLLATE NOCASE, r"),
        IndexKind(
            name: "UNIQUE", table: "CREATE TABLE t(a TEXT, b)", index: "CREATE UNIQUE INDEX i ON t(a)",
            loose: ("CREATE TABLE t(a TEXT, b)", "CREATE INDEX i ON t(a)")),
        IndexKind(
            name: "automatic, UNIQUE", table: "CREATE TABLE t(a TEXT UNIQUE, b)",
            loose: ("CREATE TABLE t(a TEXT, b)", "CREATE INDEX i ON t(a)")),
        IndexKind(
            name: "automatic, own rowid", table: "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT UNIQUE, b)",
            loose: ("CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b)", "CREATE INDEX i ON t(a)")),
        IndexKind(
            name: "automatic, PRIMARY KEY", table: "CREATE TABLE t(a TEXT PRIMARY KEY, b)",
            loose: ("CREATE TABLE t(a TEXT, b)", "CREATE INDEX i ON t(a)")),
        IndexKind(
            name: "automatic, RTRIM", table: "CREATE TABLE t(a TEXT COLLATE RTRIM UNIQUE, b)",
            key: "a COLLATE RTRIM, r",
            loose: ("CREATE TABLE t(a TEXT COLLATE RTRIM, b)", "CREATE INDEX i ON t(a)")),
        IndexKind(
            name: "automatic, DESC", table: "CREATE TABLE t(a TEXT, b, UNIQUE(b, a DESC))", columns: ["b", "a", "r"],
            key: "b, a DESC, r", stranger: "3, 'zz', 99999", wrong: "8, 'k7', 7",
            loose: ("CREATE TABLE t(a TEXT, b)", "CREATE INDEX i ON t(b, a DESC)")),
        IndexKind(
            name: "partial", table: "CREATE TABLE t(a TEXT, b)", index: "CREATE INDEX i ON t(a) WHERE b > 5"),
        IndexKind(
            name: "expression", table: "CREATE TABLE t(a TEXT, b)", index: "CREATE INDEX i ON t(lower(a))"),
        IndexKind(
            name: "WITHOUT ROWID", table: "CREATE TABLE t(a TEXT PRIMARY KEY, b) WITHOUT ROWID",
            index: "CREATE INDEX i ON t(b)", columns: ["b", "a"], key: "b, a", stranger: "3, 'zz'", wrong: "8, 'k7'"),
    ]
}
