internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// Compares the rows of a table with those of the old table that an app's own upgrade left behind.
struct LeftoverRows {
    let leftover: TableState
    let table: TableState
    /// The table as the configuration declares it.
    let owner: VersionedTable
    let state: DatabaseState

    private var connection: Connection { state.connection }
    private var references: LeftoverReferences {
        LeftoverReferences(leftover: leftover, table: table, owner: owner, state: state)
    }

    /// Returns whether the new table has every row of the old one, including the keys.
    func areAllInTable() throws -> Bool {
        var names: [String: String] = [:]
        for column in leftover.columns where table.column(column.name) == nil {
            // The column was renamed since the upgrade, or by it.
            let new = owner.renamedColumns.first { SQLName($0.value) == SQLName(column.name) }?.key
            guard let new, table.column(new) != nil else { return try state.holdsRows(leftover.name) == false }
            names[column.name] = new
        }
        let columns = leftover.columns.map(\.name)
        return try RowComparison(table: .init(leftover.name, columns: columns))
            .isContained(in: [.init(table.name, columns: columns, names: names)], connection)
    }

    /// Returns whether the new table contains only what the upgrade copied: rows of the old table, with defaults in the
    /// new columns, and no references to a new key.
    ///
    /// The app did not copy keys that SQLite assigns, so other tables reference the old keys, except for rows that the
    /// app wrote later.
    func areCopies() throws -> Bool {
        let key = try TableShape(table, in: connection).rowIDColumn
        guard let common = try commonColumns(besides: key) else { return false }
        return try holdOnlyCopies(common, under: key) && !references.meanCopies(common)
    }

    /// Returns the columns whose values the upgrade copied, except the rowid; `nil` if a column contains something
    /// else.
    private func commonColumns(besides key: ColumnState?) throws -> [(new: String, old: String)]? {
        var common: [(new: String, old: String)] = []
        for column in table.columns where column.name != key?.name && column.generation == nil {
            if leftover.column(column.name) != nil {
                common.append((column.name, column.name))
            } else if try holdsOnlyDefault(column) {
                continue
            } else if let former = references.former(of: column.name) {
                common.append((column.name, former))
            } else {
                return nil
            }
        }
        return common
    }

    /// Returns whether every row is a row of the old table, with its rowid or with a rowid that SQLite assigned to
    /// copies, which it numbers from 1.
    private func holdOnlyCopies(_ common: [(new: String, old: String)], under key: ColumnState?) throws -> Bool {
        guard let key else { return try areContained(common) }
        guard let former = references.former(of: key.name) else { return false }
        if try areContained(common + [(key.name, former)]) { return true }
        let number = SQL.quoted(column: key.name)
        let isMeant = try exists(
            "SELECT 1 FROM main.\(SQL.quoted(identifier: table.name)) "
                + "WHERE \(number) < 1 OR \(number) > \(try state.countedRows(of: leftover.name))")
        return try !isMeant && areContained(common)
    }

    private func areContained(_ common: [(new: String, old: String)]) throws -> Bool {
        let columns = common.map(\.new)
        let names = Dictionary(uniqueKeysWithValues: common.map { ($0.new, $0.old) })
        return try !columns.isEmpty
            && RowComparison(table: .init(table.name, columns: columns))
                .isContained(in: [.init(leftover.name, columns: columns, names: names)], connection)
    }

    private func holdsOnlyDefault(_ column: ColumnState) throws -> Bool {
        let name = SQL.quoted(column: column.name)
        return try !exists(
            "SELECT 1 FROM main.\(SQL.quoted(identifier: table.name)) WHERE \(name) IS NOT "
                + "\(column.defaultExpression ?? "NULL")"
        )
    }

    private func exists(_ select: String) throws -> Bool {
        try connection.value(Bool.self, SQL(text: "SELECT EXISTS (\(select))")) == true
    }
}
