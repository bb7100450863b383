internal import CipherCatalog
internal import CipherSQLite

/// Copies the changed rows of a plaintext database into its encrypted copy.
///
/// Rows that already match stay as they are. SQLite maintains the indexes, triggers do not fire, and values that a
/// table's definition forbids are copied because the original has them.
struct RangeCopy {
    /// A connection to the copy, with the original attached as `original`, in a transaction that sees one commit of the
    /// original.
    let connection: Connection

    /// Copies the changes, and returns the number of added rows minus the number of removed rows.
    func copy(_ changes: [TreeMap.Change]) throws -> Int64 {
        try connection.withoutTriggers {
            try changes.reduce(0) { count, change in
                guard let ranges = change.ranges else { return try count + copyAll(change.table.name) }
                return try count + copy(change.table.name, ranges)
            }
        }
    }

    /// Returns the columns of a table that are stored on disk, and the name of the rowid if there is one.
    private func columns(of table: SchemaName) throws -> (list: SQL, rowid: SQL?) {
        let all = try ColumnState.read(table: table, from: connection)
        // SQLite computes a generated column, whether it is stored or not.
        let list = all.filter { $0.generation == nil }.map { "\($0.schemaName)" as SQL }
        return (list.joined(by: ", "), all.rowIDAlias.map { SQL(text: $0) })
    }

    private func copyAll(_ table: SchemaName) throws -> Int64 {
        let list = try columns(of: table).list
        try connection.execute("DELETE FROM main.\(table)")
        let removed = connection.changes
        try connection.execute("INSERT INTO main.\(table)(\(list)) SELECT \(list) FROM original.\(table)")
        return Int64(connection.changes - removed)
    }

    private func copy(_ table: SchemaName, _ ranges: [TreeMap.RowIDs]) throws -> Int64 {
        let (list, rowid) = try columns(of: table)
        guard let rowid else {
            throw DatabaseError(
                extendedCode: DatabaseError.generic,
                message: "the rowids of table \(table) cannot be read, because the table has columns named rowid, oid "
                    + "and _rowid_")
        }
        var differences = Differences()
        for range in ranges {
            let condition = range.condition(rowid)
            let rows = { (schema: SQL) -> SQL in
                "SELECT \(rowid), \(list) FROM \(schema).\(table) NOT INDEXED \(condition) ORDER BY \(rowid)"
            }
            try differences.add(rows("original"), rows("main"), connection)
        }
        // All deletions come first, because a value that must be unique may have moved from one row to another.
        for row in differences.stale {
            try connection.execute("DELETE FROM main.\(table) WHERE \(rowid) = \(row)")
        }
        for row in differences.fresh {
            try connection.execute(
                """
                INSERT INTO main.\(table)(\(rowid), \(list)) SELECT \(rowid), \(list) FROM original.\(table) NOT INDEXED
                WHERE \(rowid) = \(row)
                """)
        }
        return Int64(differences.fresh.count - differences.stale.count)
    }
}

extension TreeMap.RowIDs {
    /// The clause that follows the name of the table.
    func condition(_ rowid: SQL) -> SQL {
        switch (above, below) {
        case (nil, nil): ""
        case (let above?, nil): "WHERE \(rowid) > \(above)"
        case (nil, let below?): "WHERE \(rowid) < \(below)"
        case (let above?, let below?): "WHERE \(rowid) > \(above) AND \(rowid) < \(below)"
        }
    }
}

/// The rows in which two results differ.
///
/// Each result is in the order of the rowid, which is its first column.
private struct Differences {
    /// The rows of the copy that are missing or different in the original.
    private(set) var stale: [Int64] = []
    /// The rows of the original that are missing or different in the copy.
    private(set) var fresh: [Int64] = []

    mutating func add(_ original: SQL, _ copy: SQL, _ connection: Connection) throws {
        try connection.withStatement(original) { original in
            try connection.withStatement(copy) { copy in
                var (hasOriginal, hasCopy) = (try original.step(), try copy.step())
                while hasOriginal || hasCopy {
                    let (row, copied) = (original.integer(0), copy.integer(0))
                    if !hasCopy || hasOriginal && row < copied {
                        fresh.append(row)
                        hasOriginal = try original.step()
                    } else if !hasOriginal || copied < row {
                        stale.append(copied)
                        hasCopy = try copy.step()
                    } else {
                        if !areEqual(original, copy) {
                            stale.append(copied)
                            fresh.append(row)
                        }
                        (hasOriginal, hasCopy) = (try original.step(), try copy.step())
                    }
                }
            }
        }
    }

    private func areEqual(_ one: Statement, _ other: Statement) -> Bool {
        var size: Int64 = 0
        return (1..<Int32(one.columnCount)).allSatisfy { one.column($0, equals: other, $0, size: &size) }
    }
}
