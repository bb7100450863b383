internal import CipherSQLite

/// The rows whose foreign keys refer to nothing.
///
/// Legacy databases have such rows, so a migration is held to make no new ones, not to leave none.
struct ForeignKeyViolations {
    /// A child table and the columns of a foreign key.
    ///
    /// Not the parent, for a key that is made to lead to another table is no better and no worse for a row that it leads
    /// nowhere from. Nor the number that SQLite gives a foreign key: it shifts when a column with another is appended.
    private struct Reference: Hashable {
        let child: SQLName
        let columns: [SQLName]
    }

    private struct Rows {
        var child: String
        var parent: String
        var counts: [Int64: Int] = [:]
        /// Rows of WITHOUT ROWID tables, which SQLite reports without saying which.
        var unnamed = 0
    }

    private var rows: [Reference: Rows] = [:]
    /// Tables whose foreign keys SQLite cannot check, for instance since their parent's column is not unique.
    private var uncheckable: [SQLName: (name: String, error: DatabaseError)] = [:]

    /// Checks every table that has foreign keys.
    init(in connection: Connection, tables: [TableState]) throws {
        for table in tables where !table.references.isEmpty {
            do {
                try read(table.name, connection)
            } catch let error as DatabaseError where error.extendedCode == DatabaseError.generic {
                uncheckable[SQLName(table.name)] = (table.name, error)
            }
        }
    }

    private mutating func read(_ table: String, _ connection: Connection) throws {
        var columns: [Int: [SQLName]] = [:]
        // By key, and in each by the place of the column.
        try connection.forEachRow("PRAGMA main.foreign_key_list(\(identifier: table))") { row in
            columns[try row.get(at: 0), default: []].append(SQLName(try row.get(at: 3)))
        }
        try connection.forEachRow("PRAGMA main.foreign_key_check(\(identifier: table))") { row in
            let parent = try row.get(String.self, at: 2)
            let reference = Reference(child: SQLName(table), columns: columns[try row.get(at: 3)] ?? [])
            var found = rows[reference] ?? Rows(child: table, parent: parent)
            if let rowID = try row.get(Int64?.self, at: 1) {
                found.counts[rowID, default: 0] += 1
            } else {
                found.unnamed += 1
            }
            rows[reference] = found
        }
    }

    /// Fails where there is a violation that was not there before.
    ///
    /// - Parameter origins: What the renamed tables were.
    func requireNoneBeyond(
        _ before: ForeignKeyViolations, origins: [SQLName: Plan.Origin], path: String
    ) throws {
        for (reference, found) in rows {
            let origin = origins[reference.child]
            let child = origin?.table ?? reference.child
            // Of a table that could not be checked before, nobody can say which violations are new.
            guard before.uncheckable[child] == nil else { continue }
            let old = before.rows[
                Reference(child: child, columns: reference.columns.map { origin?.columns[$0] ?? $0 })]
            let new =
                found.counts.count { $0.value > old?.counts[$0.key] ?? 0 } + max(0, found.unnamed - (old?.unnamed ?? 0))
            guard new == 0 else {
                throw StoreError(
                    .migration, path: path,
                    "the migration would leave rows of \(found.child), \(new) in number, that refer to rows of \(found.parent) "
                        + "which do not exist",
                    advice: "correct the schema or the rows; nothing was changed")
            }
        }
        for (table, failure) in uncheckable where before.uncheckable[origins[table]?.table ?? table] == nil {
            throw StoreError(
                .migration, path: path,
                "after the migration the foreign keys of \(failure.name) could not be checked",
                advice: "correct the schema; nothing was changed", underlying: failure.error)
        }
    }
}
