internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite

/// How the rows of one table are copied: as whole records, or column by column.
///
/// `INSERT INTO … SELECT *` moves whole records where SQLite finds both tables alike, but
/// - it renumbers the rows of a table with neither an INTEGER PRIMARY KEY nor an index;
/// - it refuses a table with generated columns that has a UNIQUE index, or an index and no INTEGER PRIMARY KEY: for these
///   SQLite also compiles the row-by-row copy, in case the copy were not empty, and that has fewer columns to fill;
/// - it moves the entries of indexes as they are, right or wrong.
///
/// Such tables are copied column by column. That checks NOT NULL and types, and rows that break them exist in real files;
/// so the table has a plain definition while it is filled, and its indexes are filled afterwards. The plain definition
/// numbers its columns: no name of the original's is written a second time.
/// Source: SQLite's `insert.c`, `xferOptimization`.
struct TableFilling {
    /// The columns of the original to select, the rowid first where it is not a column; `nil` for whole records.
    let columns: [SQL]?
    /// How the original is read, from its own b-tree alone; for WITHOUT ROWID tables, by their key.
    let source: SQL
    /// The same columns of the copy.
    let targets: [String]
    /// The definition while the rows are copied; `nil` for the table's own.
    let definition: String?
    /// The indexes on expressions or with a condition that SQLite can compute here: they are always filled from the rows,
    /// for nothing tells whether their entries are right.
    let computedIndexes: [SchemaName]

    /// - Parameters:
    ///   - temporaryName: The table's name in the copy while it is filled with a definition of its own.
    ///   - isKeyed: Whether the table is WITHOUT ROWID, or an index.
    ///   - rebuildsIndexes: Whether no index may be copied as it is.
    init(
        _ table: SchemaName, temporaryName: String, isKeyed: Bool, rebuildsIndexes: Bool, _ connection: Connection
    ) throws {
        guard table != "sqlite_sequence" else {
            // SQLite writes it by itself while the others are filled, under its own name.
            columns = ["old.rowid", "old.name", "old.seq"]
            source = "AS old NOT INDEXED"
            targets = ["rowid", "name", "seq"]
            definition = nil
            computedIndexes = []
            return
        }
        var indexes: [(name: SchemaName, isUnique: Bool, isKey: Bool)] = []
        var partial: Set<SchemaName> = []
        try connection.forEachRow("PRAGMA main.index_list(\(table))") { row in
            let origin = try row.get(String.self, at: 3)
            indexes.append((try row.get(at: 1), try row.get(Int.self, at: 2) != 0, origin == "pk"))
            if try row.get(Int.self, at: 4) != 0 { partial.insert(try row.get(at: 1)) }
        }
        computedIndexes = try indexes.map(\.name).filter {
            try (partial.contains($0) || Self.hasExpression($0, connection)) && Self.canCompute($0, connection)
        }
        let all = try TableColumns(table, schema: "main", connection)
        let key = indexes.first(where: \.isKey)
        let hasIntegerKey = all.hasPrimaryKey && key == nil
        let renumbers = !isKeyed && indexes.count == computedIndexes.count && !hasIntegerKey && all.rowidAlias != nil
        let refuses =
            all.hasGenerated && (isKeyed || indexes.contains(where: \.isUnique) || !indexes.isEmpty && !hasIntegerKey)
        let movesIndexes = rebuildsIndexes && indexes.count > (isKeyed ? 1 : 0)
        guard renumbers || refuses || movesIndexes else {
            columns = nil
            source = ""
            targets = []
            definition = nil
            return
        }
        var parts = all.stored.map { Self.target($0.position) }
        if hasIntegerKey, let position = all.stored.firstIndex(where: \.isPrimaryKey) {
            parts[position] += " INTEGER PRIMARY KEY"
        }
        if isKeyed, let key { parts.append("PRIMARY KEY(\(try Self.keyColumns(key.name, connection)))") }
        let rowid = isKeyed || hasIntegerKey ? nil : all.rowidAlias
        columns = (rowid.map { [SQL(text: "old.\($0)")] } ?? []) + all.stored.map { "old.\($0.name)" }
        source = isKeyed ? key.map { "AS old INDEXED BY \($0.name)" } ?? "AS old" : "AS old NOT INDEXED"
        targets = (rowid == nil ? [] : ["rowid"]) + all.stored.map { Self.target($0.position) }
        definition =
            "CREATE TABLE \(temporaryName)(\(parts.joined(separator: ", ")))" + (isKeyed ? " WITHOUT ROWID" : "")
    }

    private static func hasExpression(_ index: SchemaName, _ connection: Connection) throws -> Bool {
        var result = false
        try connection.forEachRow("PRAGMA main.index_xinfo(\(index))") { row in
            if try row.get(Int.self, at: 1) == -2 { result = true }
        }
        return result
    }

    /// Whether SQLite has every function that the index computes with.
    private static func canCompute(_ index: SchemaName, _ connection: Connection) throws -> Bool {
        do {
            _ = try Statement("EXPLAIN REINDEX main.\(index)", on: connection)
            return true
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            return false
        }
    }

    private static func target(_ position: Int) -> String { "cipherstore_\(position)" }

    private static func keyColumns(_ index: SchemaName, _ connection: Connection) throws -> String {
        var columns: [String] = []
        try connection.forEachRow("PRAGMA main.index_xinfo(\(index))") { row in
            guard try row.get(Int.self, at: 5) != 0, case let position = try row.get(Int.self, at: 1), position >= 0
            else {
                return
            }
            // Registered by now, and so Unicode.
            let collation = try row.get(String?.self, at: 4).map { " COLLATE \(SQL.quoted(identifier: $0))" } ?? ""
            columns.append(target(position) + collation + (try row.get(Int.self, at: 3) != 0 ? " DESC" : ""))
        }
        return columns.joined(separator: ", ")
    }
}
