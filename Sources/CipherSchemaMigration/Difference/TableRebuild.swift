internal import CipherCatalog
package import CipherSQLText
internal import CipherSQLite

/// Rebuilds a table and copies its rows, by the twelve steps that SQLite recommends for changes that ALTER TABLE cannot
/// make.
///
/// The new table is filled under a temporary name, the old one is dropped, and only then is the new one renamed. If the
/// old table were renamed first, foreign keys, triggers and views of other tables would follow it. Engines before
/// SQLite 3.26 leave them unchanged while foreign keys are off, and do not have `legacy_alter_table`.
///
/// Source: SQLite, "ALTER TABLE": Making Other Kinds Of Table Schema Changes.
package struct TableRebuild {
    /// The table in the database.
    package var existing: TableShape
    /// The table after the rebuild.
    package var wanted: TableShape
    /// The name under which the new table is filled; nothing else may have this name.
    package var temporaryName: String
    /// New column names, each with the name in the database, if they differ.
    package var renamedColumns: [SQLName: String]
    /// The statements that create the table's indexes and triggers again.
    package var objects: [String]
    /// Whether rows may violate CHECK constraints.
    private let ignoresChecks: Bool

    /// Creates a rebuild.
    ///
    /// - Parameter ignoresChecks: Whether rows may violate CHECK constraints; by default, they may if these are the same
    ///   as before.
    package init(
        of existing: TableShape, to wanted: TableShape, temporaryName: String,
        renamedColumns: [SQLName: String] = [:], objects: [String] = [], ignoresChecks: Bool? = nil
    ) {
        self.existing = existing
        self.wanted = wanted
        self.temporaryName = temporaryName
        self.renamedColumns = renamedColumns
        self.objects = objects
        self.ignoresChecks = ignoresChecks ?? wanted.hasSameChecks(as: existing)
    }

    /// The statements of the rebuild, in order, to be run in a transaction with foreign keys off.
    package var statements: [String] {
        let name = temporaryName
        let rename =
            "ALTER TABLE \(SQL.quoted(identifier: name)) RENAME TO \(SQL.quoted(identifier: existing.name))"
        let sequence = wanted.facts.isAutoincrement ? existing.passingSequence(to: name) : []
        return [wanted.text.createSQL(name: name)] + copying(to: name) + sequence
            + ["DROP TABLE \(SQL.quoted(identifier: existing.name))"]
            + Engine.current.renamingAlone(rename) + objects
    }

    // MARK: Rows

    /// Returns the statements that copy the rows.
    ///
    /// A constraint's own conflict clause could omit or replace rows.
    private func copying(to name: String) -> [String] {
        let columns = self.columns
        guard !columns.isEmpty else { return [] }
        let copy =
            "INSERT OR ABORT INTO \(SQL.quoted(identifier: name)) (\(columns.map(\.target).joined(separator: ", "))) "
            + "SELECT \(columns.map(\.source).joined(separator: ", ")) "
            + "FROM \(SQL.quoted(identifier: existing.name))"
        return ignoresChecks ? wanted.ignoringChecks([copy]) : [copy]
    }

    private var columns: [(target: String, source: String)] {
        let rowIDColumn = wanted.rowIDColumn.map { SQLName($0.name) }
        let isRowIDCopied = rowIDColumn.map { existing.column($0) != nil } ?? false
        var columns: [(target: String, source: String)] = []
        if !isRowIDCopied, let source = existing.rowIDAlias, let target = rowIDTarget {
            columns.append((target, source))
        }
        for column in wanted.columns where column.generation == nil {
            let name = SQLName(column.name)
            guard let old = existing.column(name) else { continue }
            // With the table's name, the name can only be a column; a name alone in double quotes may be read as a
            // string.
            let source =
                "\(SQL.quoted(identifier: existing.name)).\(SQL.quoted(identifier: renamedColumns[name] ?? old.name))"
            columns.append((SQL.quoted(identifier: column.name), filled(source, column, old)))
        }
        return columns
    }

    /// The column that receives the rowid, which is kept even if only the new table has a column for it.
    private var rowIDTarget: String? {
        if let column = wanted.rowIDColumn { return SQL.quoted(identifier: column.name) }
        return wanted.rowIDAlias
    }

    private func filled(_ source: String, _ column: ColumnState, _ old: ColumnState) -> String {
        guard column.isNotNull, !old.isNotNull, let value = column.defaultExpression else { return source }
        return "coalesce(\(source), \(value))"
    }
}

extension DatabaseState {
    /// Returns an unused name for the table of a rebuild; the database may already have an object with the usual name.
    package func freeName(for table: TableShape) -> String {
        let taken = Set(tables.map { SQLName($0.name) } + objects.map { SQLName($0.name) })
        let usual = "cipherstore_new_\(table.name)"
        var name = usual
        var number = 1
        while taken.contains(SQLName(name)) {
            number += 1
            name = "\(usual)_\(number)"
        }
        return name
    }
}
