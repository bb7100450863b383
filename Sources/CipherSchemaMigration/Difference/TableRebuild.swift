internal import CipherCatalog
package import CipherSQLText
internal import CipherSQLite

/// Makes a table anew and copies its rows, by the twelve steps that SQLite gives for what ALTER TABLE cannot do.
///
/// The new table is filled under a name of its own, the old one dropped, and only then the new one renamed: renaming
/// the old one first would make foreign keys, triggers and views of other tables follow it. Engines before SQLite 3.26
/// leave them alone while foreign keys are off, and know no `legacy_alter_table`.
///
/// Source: SQLite, "ALTER TABLE": Making Other Kinds Of Table Schema Changes.
package struct TableRebuild {
    /// The table in the database.
    package var existing: TableShape
    /// The table as it is to be.
    package var wanted: TableShape
    /// The name under which the new table is filled, which nothing else may have.
    package var temporaryName: String
    /// New column name to the one in the database, where they differ.
    package var renamedColumns: [SQLName: String]
    /// The statements that make its indexes and triggers again.
    package var objects: [String]

    package init(
        of existing: TableShape, to wanted: TableShape, temporaryName: String,
        renamedColumns: [SQLName: String] = [:], objects: [String] = []
    ) {
        self.existing = existing
        self.wanted = wanted
        self.temporaryName = temporaryName
        self.renamedColumns = renamedColumns
        self.objects = objects
    }

    /// The statements, in order; to be run in a transaction, with foreign keys off.
    package var statements: [String] {
        let name = temporaryName
        let rename =
            "ALTER TABLE \(SQL.quoted(identifier: name)) RENAME TO \(SQL.quoted(identifier: existing.name))"
        return [wanted.text.createSQL(name: name)] + copying(to: name) + keepingSequence(of: name)
            + ["DROP TABLE \(SQL.quoted(identifier: existing.name))"]
            + Engine.current.renamingAlone(rename) + objects
    }

    // MARK: Rows

    /// Rows that broke a CHECK before may continue doing so.
    private func copying(to name: String) -> [String] {
        let columns = self.columns
        guard !columns.isEmpty else { return [] }
        let copy =
            "INSERT INTO \(SQL.quoted(identifier: name)) (\(columns.map(\.target).joined(separator: ", "))) "
            + "SELECT \(columns.map(\.source).joined(separator: ", ")) "
            + "FROM \(SQL.quoted(identifier: existing.name))"
        guard !wanted.facts.checks.isEmpty, wanted.facts.checks.isSubset(of: existing.facts.checks) else {
            return [copy]
        }
        return ["PRAGMA ignore_check_constraints = ON", copy, "PRAGMA ignore_check_constraints = OFF"]
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
            // With the table's name it can be nothing but a column; a name alone in double quotes may be a string.
            let source =
                "\(SQL.quoted(identifier: existing.name)).\(SQL.quoted(identifier: renamedColumns[name] ?? old.name))"
            columns.append((SQL.quoted(identifier: column.name), filled(source, column, old)))
        }
        return columns
    }

    /// A rowid keeps its value even where the table had no name for it and gets one.
    private var rowIDTarget: String? {
        if let column = wanted.rowIDColumn { return SQL.quoted(identifier: column.name) }
        return wanted.rowIDAlias
    }

    private func filled(_ source: String, _ column: ColumnState, _ old: ColumnState) -> String {
        guard column.isNotNull, !old.isNotNull, let value = column.defaultExpression else { return source }
        return "coalesce(\(source), \(value))"
    }

    /// Of an AUTOINCREMENT table no key may ever come again, not even those of rows that are gone.
    private func keepingSequence(of name: String) -> [String] {
        guard existing.facts.isAutoincrement, wanted.facts.isAutoincrement else { return [] }
        let (old, new) = (SQL.quoted(text: existing.name), SQL.quoted(text: name))
        return [
            "DELETE FROM sqlite_sequence WHERE name = \(new)",
            "INSERT INTO sqlite_sequence (name, seq) SELECT \(new), seq FROM sqlite_sequence WHERE name = \(old)",
        ]
    }
}

extension DatabaseState {
    /// A name for a rebuild's table: a database may have something of the usual one.
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
