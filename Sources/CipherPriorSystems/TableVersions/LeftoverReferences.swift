internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// The foreign keys with which other tables reference an old table that an upgrade left behind, or the new one.
///
/// Since SQLite 3.26, the rename that began the upgrade made foreign keys reference the old table, so a foreign key
/// that names the old table refers to its keys. A foreign key that names the new table was not changed by the rename,
/// or is newer.
struct LeftoverReferences {
    let leftover: TableState
    /// The new table; `nil` if it is not known.
    let table: TableState?
    /// The new table as the configuration declares it.
    let owner: VersionedTable?
    let state: DatabaseState

    /// A column of another table, with the column that it references.
    struct Reference: Equatable {
        let child: String
        let column: String
        let namesLeftover: Bool
        let key: String
    }

    /// Returns the name of a new table's column in the old one.
    func former(of column: String) -> String? {
        if leftover.column(column) != nil { return column }
        let former = owner?.renamedColumns.first { SQLName($0.key) == SQLName(column) }?.value
        return former.flatMap { leftover.column($0)?.name }
    }

    // MARK: Checks

    /// Returns whether a row of another table references, or may reference, a row of the new table by its new key.
    func meanCopies(_ common: [(new: String, old: String)]) throws -> Bool {
        for reference in try all() {
            if reference.namesLeftover {
                if try isFoundInTableAlone(reference) { return true }
                continue
            }
            // Columns other than the key were copied with their values.
            guard table?.column(reference.key)?.primaryKeyPosition != 0 else { continue }
            guard let old = former(of: reference.key) else { return true }
            let value = value(of: reference)
            if try isAny(
                of: reference, isInNew(reference.key, value), isNotSame(common + [(reference.key, old)], old, value))
            {
                return true
            }
        }
        return false
    }

    /// Returns the foreign keys that name the old table and with which some row references a row that differs in the
    /// new table.
    func meaningLeftover() throws -> [Reference] {
        let common = (table?.columns ?? []).compactMap { column in
            former(of: column.name).map { (new: column.name, old: $0) }
        }
        return try all().filter { reference in
            guard reference.namesLeftover else { return false }
            let value = value(of: reference)
            let isKnown = common.contains { SQLName($0.old) == SQLName(reference.key) }
            return try isAny(
                of: reference, isInOld(reference.key, value),
                isKnown ? isNotSame(common, reference.key, value) : "1")
        }
    }

    /// Returns whether a row references a key that only the new table has.
    private func isFoundInTableAlone(_ reference: Reference) throws -> Bool {
        let new = table?.columns.first { column in
            former(of: column.name).map(SQLName.init) == SQLName(reference.key)
        }
        guard let new else { return false }
        let value = value(of: reference)
        return try isAny(of: reference, isInNew(new.name, value), "NOT \(isInOld(reference.key, value))")
    }

    // MARK: SQL

    private var new: String { table.map { "main.\(SQL.quoted(identifier: $0.name)) AS new" } ?? "" }
    private var old: String { "main.\(SQL.quoted(identifier: leftover.name)) AS old" }

    private func value(of reference: Reference) -> String { "child.\(SQL.quoted(identifier: reference.column))" }

    private func isInNew(_ key: String, _ value: String) -> String {
        "EXISTS (SELECT 1 FROM \(new) WHERE new.\(SQL.quoted(identifier: key)) = \(value))"
    }

    private func isInOld(_ key: String, _ value: String) -> String {
        "EXISTS (SELECT 1 FROM \(old) WHERE old.\(SQL.quoted(identifier: key)) = \(value))"
    }

    /// Returns the SQL condition that the old table's row with a key is not also in the new table, under the same key.
    private func isNotSame(_ columns: [(new: String, old: String)], _ key: String, _ value: String) -> String {
        let same = columns.map {
            "new.\(SQL.quoted(identifier: $0.new)) IS old.\(SQL.quoted(identifier: $0.old)) COLLATE BINARY"
        }
        return "NOT EXISTS (SELECT 1 FROM \(new), \(old) WHERE old.\(SQL.quoted(identifier: key)) = \(value) "
            + "AND \(same.joined(separator: " AND ")))"
    }

    private func isAny(of reference: Reference, _ conditions: String...) throws -> Bool {
        let child = "main.\(SQL.quoted(identifier: reference.child)) AS child"
        let select = "SELECT 1 FROM \(child) WHERE \(conditions.joined(separator: " AND "))"
        return try state.connection.value(Bool.self, SQL(text: "SELECT EXISTS (\(select))")) == true
    }

    // MARK: Foreign keys

    private func all() throws -> [Reference] {
        let own = [leftover.name, table?.name].compactMap { $0.map(SQLName.init) }
        return try state.tables.filter { !$0.isVirtual && !own.contains(SQLName($0.name)) }
            .flatMap { try references(of: $0.name) }
    }

    private func references(of child: String) throws -> [Reference] {
        try ForeignKeyState.read(table: child, from: state.connection).flatMap { foreignKey -> [Reference] in
            let name = SQLName(foreignKey.parent)
            guard let parent = [leftover, table].compactMap({ $0 }).first(where: { SQLName($0.name) == name }) else {
                return []
            }
            let key = parent.columns.primaryKey.map(\.name)
            return foreignKey.columns.enumerated().compactMap { position, pair in
                guard let column = pair.parent ?? (key.indices.contains(position) ? key[position] : nil) else {
                    return nil
                }
                return Reference(
                    child: child, column: pair.child, namesLeftover: name == SQLName(leftover.name), key: column)
            }
        }
    }
}
