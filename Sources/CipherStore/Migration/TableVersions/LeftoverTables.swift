internal import CipherSQLite

/// The old tables that an app's own upgrade left behind when it did not end.
///
/// It renamed a table to `tableOld`, made it anew, copied the rows and dropped the old one, without a transaction. So
/// the rows are in the old table while the new one is missing or empty: the old one is given its name back, with its
/// keys, indexes and triggers, and is then brought to its shape like any other. So is one whose rows were copied already,
/// for the upgrade did not copy their keys. Where both hold rows of their own, which of them count only their owner
/// knows: both are kept.
struct LeftoverTables {
    /// The name that the upgrade gives every old table.
    static let commonName = "tableOld"

    /// The tables that get their old ones back, with the names of these.
    private(set) var taken: [(table: String, leftover: String)] = []
    /// What makes room for them.
    private(set) var before: [Plan.Operation] = []
    /// What follows once every table has its shape.
    private(set) var after: [Plan.Operation] = []
    private(set) var withheld: [Plan.Withheld] = []
    /// The state that the schema is compared with: without the empty tables that make room.
    private(set) var state: DatabaseState

    private let tables: [VersionedTable]
    private let record: TableVersionRecord
    private let wanted: WantedSchema

    init(tables: [VersionedTable], record: TableVersionRecord, wanted: WantedSchema, state: DatabaseState) throws {
        self.tables = tables
        self.record = record
        self.wanted = wanted
        self.state = state
        let declared = Set(tables.map { SQLName($0.name) })
        for leftover in state.tables where !leftover.isVirtual && !declared.contains(SQLName(leftover.name)) {
            let owners = owners(of: leftover)
            if let owner = try theOne(of: owners, for: leftover) {
                try settle(leftover, of: owner)
            } else if SQLName(leftover.name) == SQLName(Self.commonName) {
                withheld.append(
                    Plan.Withheld(
                        .dropTable, table: leftover.name, rows: try state.rowCount(of: leftover.name),
                        reason: "an upgrade that did not end left it, and it fits no table of the configuration"))
            }
        }
    }

    // MARK: Whose it is

    /// The tables whose old one this may be.
    private func owners(of leftover: TableState) -> [VersionedTable] {
        let name = SQLName(leftover.name)
        let free = tables.filter { table in !taken.contains { $0.table == table.name } }
        let named = free.filter { $0.leftover.map(SQLName.init) == name }
        guard named.isEmpty else { return named }
        return free.filter { table in
            guard table.leftover == nil, fit(of: leftover, to: table) != nil else { return false }
            if name == SQLName(Self.commonName) { return true }
            return name == SQLName(table.name + "Old") && state.table(table.name) == nil
        }
    }

    /// The likeliest: one whose upgrade is known not to have ended, that is missing or else empty, with the most
    /// columns in common.
    private func theOne(of owners: [VersionedTable], for leftover: TableState) throws -> VersionedTable? {
        let ranked = try owners.map { (table: $0, rank: try rank($0, leftover)) }
        guard let best = ranked.max(by: { $0.rank.lexicographicallyPrecedes($1.rank) }) else { return nil }
        let equals = ranked.filter { $0.rank == best.rank }.map(\.table)
        guard equals.count == 1 else {
            throw StoreError(
                .migration, path: state.connection.path,
                "the table \(leftover.name), which an upgrade that did not end left, may belong to "
                    + equals.map(\.name).joined(separator: " or "),
                advice: "name it in the configuration as tableVersions.TABLE.leftover; nothing was changed")
        }
        return best.table
    }

    private func rank(_ table: VersionedTable, _ leftover: TableState) throws -> [Double] {
        let isUnfinished = record.version(of: table.name).map { $0 < table.version } ?? false
        let room: Double = try state.table(table.name).map { try state.holdsRows($0.name) ? 0 : 1 } ?? 2
        return [isUnfinished ? 1 : 0, room, fit(of: leftover, to: table) ?? 0]
    }

    /// How well the columns agree, from 0 to 1; `nil` where they are of another table.
    private func fit(of leftover: TableState, to table: VersionedTable) -> Double? {
        guard let shape = wanted.tables.first(where: { SQLName($0.name) == SQLName(table.name) }) else { return nil }
        let wantedNames = Set(shape.columns.map { SQLName($0.name) })
        let formerNames = Set(table.renamedColumns.values.map(SQLName.init))
        let common = leftover.columns.filter {
            wantedNames.contains(SQLName($0.name)) || formerNames.contains(SQLName($0.name))
        }
        let hasKey = leftover.columns.allSatisfy { column in
            column.primaryKeyPosition == 0 || common.contains { $0.name == column.name }
        }
        guard hasKey, common.count * 2 > leftover.columns.count else { return nil }
        return Double(common.count) / Double(leftover.columns.count + wantedNames.count - common.count)
    }

    // MARK: What becomes of it

    private mutating func settle(_ leftover: TableState, of owner: VersionedTable) throws {
        guard let table = state.table(owner.name) else {
            taken.append((owner.name, leftover.name))
            return
        }
        if try state.holdsRows(leftover.name), try !state.holdsRows(table.name) {
            makeRoom(table, for: leftover, "it is empty, and")
        } else if try !holdsAll(leftover, table), try isCopy(table, of: leftover, owner) {
            makeRoom(table, for: leftover, "it holds copies under new keys, and")
        } else {
            try dropOrKeep(leftover, besides: table)
        }
    }

    /// The new table goes; what it has besides rows is made again.
    private mutating func makeRoom(_ table: TableState, for leftover: TableState, _ reason: String) {
        taken.append((table.name, leftover.name))
        before.append(
            Plan.Operation(
                .dropTable, table: table.name, sql: ["DROP TABLE main.\(SQL.quoted(identifier: table.name))"],
                reason: "\(reason) an upgrade that did not end left the rows in \(leftover.name)"))
        let wantedObjects = Set(wanted.objects.map { SQLName($0.name) })
        for object in state.objects where object.type != "view" && SQLName(object.table) == SQLName(table.name) {
            guard !wantedObjects.contains(SQLName(object.name)) else { continue }
            after.append(
                Plan.Operation(
                    object.type == "index" ? .createIndex : .createTrigger, table: table.name, object: object.name,
                    sql: [object.sql], reason: "the table that made room had it"))
        }
        state = state.without(table: table.name)
    }

    private mutating func dropOrKeep(_ leftover: TableState, besides table: TableState) throws {
        let reason: String
        if try !holdsAll(leftover, table) {
            reason =
                "an upgrade that did not end left it, and it holds rows that \(table.name), which has rows too, lacks"
        } else if let user = user(of: leftover) {
            reason = "an upgrade that did not end left it, and \(user) needs it"
        } else {
            after.append(
                Plan.Operation(
                    .dropTable, table: leftover.name,
                    sql: ["DROP TABLE main.\(SQL.quoted(identifier: leftover.name))"],
                    reason: "an upgrade that did not end left it, and \(table.name) has every row of it"))
            return
        }
        withheld.append(
            Plan.Withheld(
                .dropTable, table: leftover.name, rows: try state.rowCount(of: leftover.name), reason: reason))
    }

    /// Whether the new table has every row of the old one, keys and all.
    private func holdsAll(_ leftover: TableState, _ table: TableState) throws -> Bool {
        let rows = RowComparison(table: .init(leftover.name, columns: leftover.columns.map(\.name)))
        return try rows.isContained(in: [.init(table.name, columns: table.columns.map(\.name))], state.connection)
    }

    /// Whether the new table holds what the upgrade copied and nothing else: as many rows, equal in the columns that
    /// both have, under keys of their own, with defaults in the columns that are new.
    ///
    /// The app did not copy keys, so the references of other tables are to the old ones.
    private func isCopy(_ table: TableState, of leftover: TableState, _ owner: VersionedTable) throws -> Bool {
        guard try state.countedRows(of: table.name) == state.countedRows(of: leftover.name) else { return false }
        var common: [String] = []
        var names: [String: String] = [:]
        for column in table.columns where column.primaryKeyPosition == 0 && column.generation == nil {
            let former = owner.renamedColumns.first { SQLName($0.key) == SQLName(column.name) }?.value
            if leftover.column(column.name) != nil {
                common.append(column.name)
            } else if try holdsOnlyDefault(column, table) {
                continue
            } else if let former, leftover.column(former) != nil {
                common.append(column.name)
                names[column.name] = former
            } else {
                return false
            }
        }
        guard !common.isEmpty else { return false }
        return try RowComparison(table: .init(table.name, columns: common))
            .isContained(in: [.init(leftover.name, columns: common, names: names)], state.connection)
    }

    private func holdsOnlyDefault(_ column: ColumnState, _ table: TableState) throws -> Bool {
        let name = SQL.quoted(identifier: column.name)
        let other =
            "SELECT 1 FROM main.\(SQL.quoted(identifier: table.name)) WHERE \(name) IS NOT (\(column.defaultSQL ?? "NULL"))"
        return try state.connection.value(Bool.self, SQL(text: "SELECT EXISTS (\(other))")) == false
    }

    /// What would be left without the table: the foreign keys of declared tables are compared with their declaration.
    private func user(of leftover: TableState) -> String? {
        let name = SQLName(leftover.name)
        let declared = Set(tables.map { SQLName($0.name) })
        if let table = state.tables.first(where: {
            SQLName($0.name) != name && !declared.contains(SQLName($0.name)) && $0.references.contains(name)
        }) {
            return "a foreign key of \(table.name)"
        }
        return state.objects.first {
            $0.type == "view" || SQLName($0.table) != name ? name.isMentioned(in: $0.sql) : false
        }
        .map { "the \($0.type) \($0.name)" }
    }
}
