internal import CipherSQLite

/// Compares the rows of a table with those of the old one that an app's own upgrade left.
struct LeftoverRows {
    let leftover: TableState
    let table: TableState
    /// The table as the configuration has it.
    let owner: VersionedTable
    let state: DatabaseState

    private var connection: Connection { state.connection }
    private var references: LeftoverReferences {
        LeftoverReferences(leftover: leftover, table: table, owner: owner, state: state)
    }

    /// Whether the new table has every row of the old one, keys and all.
    func areAllInTable() throws -> Bool {
        var names: [String: String] = [:]
        for column in leftover.columns where table.column(column.name) == nil {
            // Renamed since, or by the upgrade.
            let new = owner.renamedColumns.first { SQLName($0.value) == SQLName(column.name) }?.key
            guard let new, table.column(new) != nil else { return try state.holdsRows(leftover.name) == false }
            names[column.name] = new
        }
        let columns = leftover.columns.map(\.name)
        return try RowComparison(table: .init(leftover.name, columns: columns))
            .isContained(in: [.init(table.name, columns: columns, names: names)], connection)
    }

    /// Whether the new table holds what the upgrade copied and nothing else: as many rows, equal in the columns that
    /// both have, under keys of their own, with defaults in the columns that are new, and nothing refers to a new key.
    ///
    /// The app did not copy keys, so the references of other tables are to the old ones, but for those of rows that the
    /// app wrote later.
    func areCopied() throws -> Bool {
        guard try state.countedRows(of: table.name) == state.countedRows(of: leftover.name),
            let common = try commonColumns(), !common.isEmpty
        else { return false }
        let names = Dictionary(uniqueKeysWithValues: common.map { ($0.new, $0.old) })
        let columns = common.map(\.new)
        let isSame = try RowComparison(table: .init(table.name, columns: columns))
            .isContained(in: [.init(leftover.name, columns: columns, names: names)], connection)
        return try isSame && !references.meanCopies(common)
    }

    /// The columns whose values the upgrade copied; `nil` where one holds something else.
    private func commonColumns() throws -> [(new: String, old: String)]? {
        var common: [(new: String, old: String)] = []
        for column in table.columns where column.primaryKeyPosition == 0 && column.generation == nil {
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

    private func holdsOnlyDefault(_ column: ColumnState) throws -> Bool {
        let name = SQL.quoted(column: column.name)
        return try !exists(
            "SELECT 1 FROM main.\(SQL.quoted(identifier: table.name)) WHERE \(name) IS NOT (\(column.defaultSQL ?? "NULL"))"
        )
    }

    private func exists(_ select: String) throws -> Bool {
        try connection.value(Bool.self, SQL(text: "SELECT EXISTS (\(select))")) == true
    }
}
