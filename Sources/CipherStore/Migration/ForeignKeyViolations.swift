internal import CipherSQLite

/// The rows whose foreign keys refer to nothing.
///
/// Legacy databases have such rows, so a migration is held to make no new ones, not to leave none.
struct ForeignKeyViolations {
    /// A child table and its parent table.
    ///
    /// The number that SQLite gives a foreign key is no part of it: it shifts when a column with another is appended.
    private struct Reference: Hashable {
        let child: SQLName
        let parent: SQLName
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
        let child = SQLName(table)
        try connection.forEachRow("PRAGMA main.foreign_key_check(\(identifier: table))") { row in
            let parent = try row.get(String.self, at: 2)
            var found = rows[Reference(child: child, parent: SQLName(parent))] ?? Rows(child: table, parent: parent)
            if let rowID = try row.get(Int64?.self, at: 1) {
                found.counts[rowID, default: 0] += 1
            } else {
                found.unnamed += 1
            }
            rows[Reference(child: child, parent: SQLName(parent))] = found
        }
    }

    /// Fails where there is a violation that was not there before.
    func requireNoneBeyond(_ before: ForeignKeyViolations, path: String) throws {
        // Of a table that could not be checked before, nobody can say which violations are new.
        for (reference, found) in rows where before.uncheckable[reference.child] == nil {
            let old = before.rows[reference]
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
        for (table, failure) in uncheckable where before.uncheckable[table] == nil {
            throw StoreError(
                .migration, path: path,
                "after the migration the foreign keys of \(failure.name) could not be checked",
                advice: "correct the schema; nothing was changed", underlying: failure.error)
        }
    }
}
