internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite

/// The way in which the rows of one table are copied: as whole records, or column by column.
///
/// `INSERT INTO … SELECT *` moves whole records if SQLite considers both tables alike, but
/// - it renumbers the rows of a table with neither an INTEGER PRIMARY KEY nor an index, from 1 on;
/// - it refuses a table with generated columns that has a UNIQUE index, an index and no INTEGER PRIMARY KEY, or an
///   INTEGER PRIMARY KEY with a conflict clause: for these, SQLite also compiles a row-by-row copy, in case the target is
///   not empty, and that copy has fewer columns to fill;
/// - it moves the entries of indexes as they are, right or wrong;
/// - it refuses an AUTOINCREMENT table if the database lacks `sqlite_sequence`.
///
/// Such tables are copied column by column. That checks NOT NULL and types, and real files contain rows that violate
/// them. The table therefore has a plain definition while it is filled, and its indexes are filled afterwards. The
/// plain definition numbers its columns, so no name of the original is written a second time. Its columns have no type,
/// except that those of type REAL keep it, because SQLite stores whole numbers in them in fewer bytes.
/// Source: SQLite's `insert.c`, `xferOptimization`.
struct TableFilling {
    /// The columns of the original to select, beginning with the rowid if it is not a column; `nil` to copy whole
    /// records.
    let columns: [SQL]?
    /// The clause with which the original is read: from its own b-tree alone; for WITHOUT ROWID tables, by their key.
    let source: SQL
    /// The corresponding columns of the copy.
    let targets: [String]
    /// The definition to use while the rows are copied; `nil` for the table's own.
    let definition: String?
    /// The indexes on expressions or with a condition that SQLite can compute here.
    ///
    /// They are always filled from the rows, because nothing shows whether their entries are correct.
    let computedIndexes: [SchemaName]
    /// The maximum number of bytes that the rows take in addition to those that they take in the original.
    ///
    /// Rows that are copied column by column contain the values of columns that were added later, and real numbers
    /// that the original stores as integers.
    let growth: Double

    /// - Parameters:
    ///   - temporaryName: The table's name in the copy while it is filled with a temporary definition.
    ///   - isKeyed: Whether the table is WITHOUT ROWID, or an index.
    ///   - lacksSequence: Whether the table may be AUTOINCREMENT although the database lacks `sqlite_sequence`.
    ///   - rebuildsIndexes: Whether every index must be rebuilt instead of copied.
    init(
        _ table: SchemaName, temporaryName: String, isKeyed: Bool, lacksSequence: Bool, rebuildsIndexes: Bool,
        _ connection: Connection
    ) throws {
        guard table != "sqlite_sequence" else {
            // SQLite writes this table itself, under its own name, while the other tables are filled.
            columns = ["old.rowid", "old.name", "old.seq"]
            source = "AS old NOT INDEXED"
            targets = ["rowid", "name", "seq"]
            definition = nil
            computedIndexes = []
            growth = 0
            return
        }
        let indexes = try IndexState.read(table: table, from: connection)
        computedIndexes = try indexes.filter { index in
            try (index.isPartial || index.parts(connection).contains(where: \.isExpression))
                && Self.canCompute(index.name, connection)
        }.map(\.name)
        let all = try ColumnState.read(table: table, from: connection)
        // Each column with its position among all columns of the table.
        let stored = all.enumerated().filter { $0.element.generation != .virtual }
        let key = indexes.first { $0.origin == .primaryKey }
        let hasIntegerKey = !all.primaryKey.isEmpty && key == nil
        let renumbers =
            try !isKeyed && indexes.count == computedIndexes.count && !hasIntegerKey
            && all.rowIDAlias.map { try !Self.isNumberedAnew($0, table, connection) } ?? false
        let refuses =
            try all.contains { $0.generation != nil }
            && (isKeyed || indexes.contains(where: \.isUnique) || !indexes.isEmpty && !hasIntegerKey
                || Self.mayHaveConflictClause(table, connection))
        let movesIndexes = rebuildsIndexes && indexes.count > (isKeyed ? 1 : 0)
        guard renumbers || refuses || movesIndexes || lacksSequence else {
            columns = nil
            source = ""
            targets = []
            definition = nil
            growth = 0
            return
        }
        source = isKeyed ? key.map { "AS old INDEXED BY \($0.name)" } ?? "AS old" : "AS old NOT INDEXED"
        let content = try Content(of: table, stored.map(\.element), source, connection)
        growth = Double(content.rows) * stored.reduce(0) { $0 + 9 + Double($1.element.defaultSQL?.utf8.count ?? 0) }
        var parts = stored.enumerated().map { place, column in
            Self.target(column.offset) + (content.hasOnlyReals[place] ? " REAL" : "")
        }
        if hasIntegerKey, let position = stored.firstIndex(where: { $0.element.primaryKeyPosition > 0 }) {
            parts[position] += " INTEGER PRIMARY KEY"
        }
        if isKeyed, let key { parts.append("PRIMARY KEY(\(Self.keyColumns(try key.parts(connection))))") }
        let rowid = isKeyed || hasIntegerKey ? nil : all.rowIDAlias
        columns = (rowid.map { [SQL(text: "old.\($0)")] } ?? []) + stored.map { "old.\($0.element.schemaName)" }
        targets = (rowid == nil ? [] : ["rowid"]) + stored.map { Self.target($0.offset) }
        definition =
            "CREATE TABLE \(temporaryName)(\(parts.joined(separator: ", ")))" + (isKeyed ? " WITHOUT ROWID" : "")
    }

    private static func mayHaveConflictClause(_ table: SchemaName, _ connection: Connection) throws -> Bool {
        try connection.values(
            SchemaName.self, "SELECT name FROM main.sqlite_master WHERE type = 'table' AND sql LIKE '%conflict%'"
        ).contains(table)
    }

    /// Returns whether the rows have the numbers that SQLite would assign to them: from 1 to their count.
    private static func isNumberedAnew(_ rowid: String, _ table: SchemaName, _ connection: Connection) throws -> Bool {
        func number(_ order: SQL) throws -> Int64? {
            try connection.value(
                Int64.self,
                "SELECT \(SQL(text: rowid)) FROM main.\(table) NOT INDEXED ORDER BY \(SQL(text: rowid)) \(order) LIMIT 1"
            )
        }
        guard let first = try number("ASC") else { return true }
        // Only the count is slow. It never ends if pages refer to each other in a cycle, and count(*) is a single
        // step.
        return try first == 1
            && number("DESC")
                == connection.withinStepsForRows {
                    try connection.value(Int64.self, "SELECT count(\(SQL(text: rowid))) FROM main.\(table) NOT INDEXED")
                }
    }

    /// What a walk through the rows of a table shows.
    private struct Content {
        /// The number of rows; 0 if they cannot all be read.
        var rows: Int64 = 0
        /// For each column, whether its type is REAL and none of its values is text.
        ///
        /// SQLite converts text that looks like a number when it writes the text into such a column. If the type was
        /// changed later, such text may be there.
        var hasOnlyReals: [Bool]

        init(
            of table: SchemaName, _ columns: [ColumnState], _ source: SQL, _ connection: Connection
        ) throws {
            let reals = columns.indices.filter { Affinity(columns[$0].type) == .real }
            hasOnlyReals = Array(repeating: false, count: columns.count)
            let list = reals.map { ", max(typeof(old.\(columns[$0].schemaName)) = 'text')" as SQL }.joined(by: "")
            do {
                // count(*) is a single step, which never ends if pages refer to each other in a cycle.
                try connection.withinStepsForRows {
                    try connection.forEachRow("SELECT count(1)\(list) FROM main.\(table) \(source)") { row in
                        rows = try row.get(at: 0)
                        for (place, column) in reals.enumerated() {
                            hasOnlyReals[column] = try row.get(Int?.self, at: place + 1) != 1
                        }
                    }
                }
            } catch let error as DatabaseError where error.isCorrupt {
                // The copying of the rows ends with the same error, or with a better one.
            }
        }
    }

    /// Returns whether SQLite has every function that the index uses.
    private static func canCompute(_ index: SchemaName, _ connection: Connection) throws -> Bool {
        do {
            _ = try Statement("EXPLAIN REINDEX main.\(index)", on: connection)
            return true
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            return false
        }
    }

    private static func target(_ position: Int) -> String { "cipherstore_\(position)" }

    private static func keyColumns(_ parts: [IndexState.Part]) -> String {
        parts.filter { $0.isKey && $0.position >= 0 }.map { part in
            // The collation is registered by now, so its name is valid Unicode.
            let collation = part.collation?.text
            return target(part.position) + (collation.map { " COLLATE \(SQL.quoted(identifier: $0))" } ?? "")
                + (part.isDescending ? " DESC" : "")
        }.joined(separator: ", ")
    }
}
