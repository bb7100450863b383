import CipherSQLite

/// How the rows of one table are copied: as whole records, or by the names of their columns.
///
/// `INSERT INTO … SELECT *` moves whole records where SQLite finds both tables alike, but
/// - it renumbers the rows of a table with neither an INTEGER PRIMARY KEY nor an index;
/// - it refuses a table with generated columns that has a UNIQUE index, or an index and no INTEGER PRIMARY KEY: for these
///   SQLite also compiles the row-by-row copy, in case the copy were not empty, and that has fewer columns to fill.
///
/// Such tables are copied by name. That checks NOT NULL and types, and rows that break them exist in real files; so the
/// table has a plain definition while it is filled, and its indexes are filled afterwards.
/// Source: SQLite's `insert.c`, `xferOptimization`.
struct TableFilling {
    /// The quoted columns to name, the rowid first where it is not a column; `nil` for whole records.
    let namedColumns: [String]?
    /// The definition while the rows are copied; `nil` for the table's own.
    let definition: String?

    /// - Parameter isKeyed: Whether the table is WITHOUT ROWID, or an index.
    init(_ table: String, isKeyed: Bool, _ connection: Connection) throws {
        var indexes: [(name: String, isUnique: Bool, origin: String)] = []
        try connection.forEachRow(SQL(text: "PRAGMA main.index_list(\(SQL.quoted(identifier: table)))")) { row in
            indexes.append((try row.get(at: 1), try row.get(Int.self, at: 2) != 0, try row.get(at: 3)))
        }
        let columns = try TableColumns(table, schema: "main", connection)
        let key = indexes.first { $0.origin == "pk" }
        let hasIntegerKey = columns.hasPrimaryKey && key == nil
        let renumbers = !isKeyed && indexes.isEmpty && !hasIntegerKey && columns.rowidAlias != nil
        let refuses =
            columns.hasGenerated
            && (isKeyed || indexes.contains(where: \.isUnique) || !indexes.isEmpty && !hasIntegerKey)
        guard renumbers || refuses else {
            namedColumns = nil
            definition = nil
            return
        }
        let stored = columns.stored.map { SQL.quoted(identifier: $0) }
        var parts = stored
        if hasIntegerKey, let position = columns.stored.firstIndex(where: columns.isPrimaryKey) {
            parts[position] += " INTEGER PRIMARY KEY"
        }
        if isKeyed, let key { parts.append("PRIMARY KEY(\(try Self.keyColumns(key.name, connection)))") }
        let rowid = isKeyed || hasIntegerKey ? nil : columns.rowidAlias
        namedColumns = (rowid.map { [$0] } ?? []) + stored
        definition =
            "CREATE TABLE \(SQL.quoted(identifier: table))(\(parts.joined(separator: ", ")))"
            + (isKeyed ? " WITHOUT ROWID" : "")
    }

    private static func keyColumns(_ index: String, _ connection: Connection) throws -> String {
        var columns: [String] = []
        try connection.forEachRow(SQL(text: "PRAGMA main.index_xinfo(\(SQL.quoted(identifier: index)))")) { row in
            guard try row.get(Int.self, at: 5) != 0, let name = try row.get(String?.self, at: 2) else { return }
            let collation = try row.get(String?.self, at: 4).map { " COLLATE \(SQL.quoted(identifier: $0))" } ?? ""
            columns.append(
                SQL.quoted(identifier: name) + collation + (try row.get(Int.self, at: 3) != 0 ? " DESC" : ""))
        }
        return columns.joined(separator: ", ")
    }
}
