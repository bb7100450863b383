internal import CipherSQLite

/// Compares the rows of a table with those of the old one that an app's own upgrade left.
struct LeftoverRows {
    let leftover: TableState
    let table: TableState
    /// The table as the configuration has it.
    let owner: VersionedTable
    let state: DatabaseState

    private var connection: Connection { state.connection }

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
        return try isSame && !isReferredTo(common)
    }

    /// The columns whose values the upgrade copied; `nil` where one holds something else.
    private func commonColumns() throws -> [(new: String, old: String)]? {
        var common: [(new: String, old: String)] = []
        for column in table.columns where column.primaryKeyPosition == 0 && column.generation == nil {
            if leftover.column(column.name) != nil {
                common.append((column.name, column.name))
            } else if try holdsOnlyDefault(column) {
                continue
            } else if let former = former(of: column.name) {
                common.append((column.name, former))
            } else {
                return nil
            }
        }
        return common
    }

    /// What a column of the table is called in the old one.
    private func former(of column: String) -> String? {
        if leftover.column(column) != nil { return column }
        let former = owner.renamedColumns.first { SQLName($0.key) == SQLName(column) }?.value
        return former.flatMap { leftover.column($0)?.name }
    }

    private func holdsOnlyDefault(_ column: ColumnState) throws -> Bool {
        let name = SQL.quoted(identifier: column.name)
        return try !exists(
            "SELECT 1 FROM main.\(SQL.quoted(identifier: table.name)) WHERE \(name) IS NOT (\(column.defaultSQL ?? "NULL"))"
        )
    }

    // MARK: References

    /// Whether a row of another table refers, or may refer, to a row of the new table by its new key.
    private func isReferredTo(_ common: [(new: String, old: String)]) throws -> Bool {
        let own = [SQLName(table.name), SQLName(leftover.name)]
        for child in state.tables where !child.isVirtual && !own.contains(SQLName(child.name)) {
            for pair in try references(of: child.name, to: own) {
                // The others were copied with their values.
                guard table.column(pair.parent)?.primaryKeyPosition != 0 else { continue }
                guard let old = former(of: pair.parent) else { return true }
                if try refers(child.name, pair.child, key: (pair.parent, old), common) { return true }
            }
        }
        return false
    }

    /// A key that is in the new table means its row there, unless the old one has the same row under it.
    private func refers(
        _ child: String, _ column: String, key: (new: String, old: String), _ common: [(new: String, old: String)]
    ) throws -> Bool {
        let value = "child.\(SQL.quoted(identifier: column))"
        let newKey = "new.\(SQL.quoted(identifier: key.new))"
        let same = ([key] + common).map {
            "new.\(SQL.quoted(identifier: $0.new)) IS old.\(SQL.quoted(identifier: $0.old)) COLLATE BINARY"
        }
        let new = "main.\(SQL.quoted(identifier: table.name)) AS new"
        let old = "main.\(SQL.quoted(identifier: leftover.name)) AS old"
        return try exists(
            """
            SELECT 1 FROM main.\(SQL.quoted(identifier: child)) AS child
            WHERE EXISTS (SELECT 1 FROM \(new) WHERE \(newKey) = \(value))
            AND NOT EXISTS (SELECT 1 FROM \(new), \(old) WHERE \(newKey) = \(value) AND \(same.joined(separator: " AND ")))
            """)
    }

    /// The columns of a table that refer to one of the two, with the columns that they refer to.
    private func references(of child: String, to parents: [SQLName]) throws -> [(child: String, parent: String)] {
        let key = table.columns.filter { $0.primaryKeyPosition > 0 }
            .sorted { $0.primaryKeyPosition < $1.primaryKeyPosition }.map(\.name)
        var found: [(child: String, parent: String)] = []
        try connection.forEachRow("PRAGMA main.foreign_key_list(\(identifier: child))") { row in
            guard parents.contains(SQLName(try row.get(at: 2))) else { return }
            let position = try row.get(Int.self, at: 1)
            let parent = try row.get(String?.self, at: 4) ?? (key.indices.contains(position) ? key[position] : nil)
            if let parent { found.append((try row.get(at: 3), parent)) }
        }
        return found
    }

    private func exists(_ select: String) throws -> Bool {
        try connection.value(Bool.self, SQL(text: "SELECT EXISTS (\(select))")) == true
    }
}
