internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// The old tables that an unfinished upgrade by the app itself left behind.
///
/// The upgrade renamed a table to `tableOld`, created it again, copied the rows and dropped the old table, without a
/// transaction. Therefore, the rows are in the old table as long as the new one is missing, is empty or contains only
/// copies. In that case the old table is renamed back, with its keys, indexes and triggers, and is then migrated like
/// any other table. If both tables contain their own rows, or something references a new key, only the app's developer
/// knows which rows are current, and must decide before anything is recorded.
struct LeftoverTables {
    /// The name to which the upgrade renames every old table.
    static let commonName = "tableOld"

    /// The tables that are replaced with their old tables, each with the old table's name.
    private(set) var taken: [(table: String, leftover: String)] = []
    /// The operations that free the names of the old tables.
    private(set) var before: [Plan.Operation] = []
    /// The operations that follow after every table has its new definition.
    private(set) var after: [Plan.Operation] = []
    private(set) var withheld: [Plan.Withheld] = []
    /// The columns of declared tables whose foreign keys continue to reference an old table that is kept.
    private(set) var keptReferences: [(table: String, column: String, leftover: String)] = []
    /// The state that the schema is compared with, without the tables that are dropped to free their names.
    private(set) var state: DatabaseState

    private let tables: [VersionedTable]
    private let wanted: WantedSchema

    init(tables: [VersionedTable], record: TableVersionRecord, wanted: WantedSchema, state: DatabaseState) throws {
        self.tables = tables
        self.wanted = wanted
        self.state = state
        let declared = Set(tables.map { SQLName($0.name) })
        let owner = LeftoverOwner(tables: tables, record: record, wanted: wanted, state: state)
        for leftover in state.tables where !leftover.isVirtual && !declared.contains(SQLName(leftover.name)) {
            let free = tables.filter { table in !taken.contains { $0.table == table.name } }
            if let table = try owner.table(of: leftover, among: free) {
                try settle(leftover, of: table)
            } else if SQLName(leftover.name) == SQLName(Self.commonName) {
                withheld.append(
                    Plan.Withheld(
                        .dropTable, table: leftover.name, rows: try state.rowCount(of: leftover.name),
                        reason:
                            "an unfinished upgrade left the table \(leftover.name) behind, but the configuration does "
                            + "not specify which table it belongs to"
                    ))
                try keepReferences(to: leftover, besides: nil, of: nil)
            }
        }
    }

    // MARK: Decision

    private mutating func settle(_ leftover: TableState, of table: VersionedTable) throws {
        guard let present = state.table(table.name) else {
            taken.append((table.name, leftover.name))
            return
        }
        let rows = LeftoverRows(leftover: leftover, table: present, owner: table, state: state)
        let isHeld = try rows.areAllInTable()
        let isNeeded = user(of: leftover) != nil
        if state.isAdopted || isHeld && !isNeeded {
            // The app has since been used with both tables, so an empty table was emptied by its user.
            try dropOrKeep(leftover, besides: present, of: table, isHeld: isHeld)
        } else if try !state.holdsRows(present.name) {
            makeRoom(present, for: leftover, "is empty")
        } else if try rows.areCopies() {
            makeRoom(present, for: leftover, "contains only copies of them")
        } else if isHeld || table.leftoverRows == .keep {
            try dropOrKeep(leftover, besides: present, of: table, isHeld: isHeld)
        } else {
            throw StoreError(
                .migration, path: state.connection.path,
                "an unfinished upgrade left behind both \(leftover.name) and \(present.name), and it is unclear which "
                    + "rows are current: each table contains rows that the other lacks, or another table refers to "
                    + "keys that identify different rows in the two tables",
                advice: "set tableVersions.\(table.name).leftoverRows to \"keep\" in the configuration to keep both "
                    + "tables, or merge the rows by hand", changed: .nothing)
        }
    }

    /// Drops the new table; its indexes and triggers are created again later.
    private mutating func makeRoom(_ table: TableState, for leftover: TableState, _ reason: String) {
        taken.append((table.name, leftover.name))
        before.append(
            Plan.Operation(
                .dropTable, table: table.name, sql: ["DROP TABLE main.\(SQL.quoted(identifier: table.name))"],
                reason: "an unfinished upgrade left the rows in \(leftover.name), and \(table.name) \(reason)"))
        let wantedObjects = Set(wanted.objects.map(\.identity))
        for object in state.objects where object.type != "view" && SQLName(object.table) == SQLName(table.name) {
            guard !wantedObjects.contains(object.identity) else { continue }
            after.append(
                Plan.Operation(
                    object.type == "index" ? .createIndex : .createTrigger, table: table.name, object: object.name,
                    sql: [object.sql], reason: "the dropped table \(table.name) had this \(object.type)"))
        }
        state = state.without(table: table.name)
    }

    private mutating func dropOrKeep(
        _ leftover: TableState, besides table: TableState, of owner: VersionedTable, isHeld: Bool
    ) throws {
        let reason: String
        if !isHeld {
            reason = "an unfinished upgrade left behind \(leftover.name), which contains rows that \(table.name) lacks"
        } else if let user = user(of: leftover) {
            reason = "an unfinished upgrade left behind \(leftover.name), and \(user) refers to this table"
        } else {
            after.append(
                Plan.Operation(
                    .dropTable, table: leftover.name,
                    sql: ["DROP TABLE main.\(SQL.quoted(identifier: leftover.name))"],
                    reason: "an unfinished upgrade left behind \(leftover.name), and \(table.name) contains all of its "
                        + "rows"))
            return
        }
        withheld.append(
            Plan.Withheld(
                .dropTable, table: leftover.name, rows: try state.rowCount(of: leftover.name), reason: reason))
        if !isHeld { try keepReferences(to: leftover, besides: table, of: owner) }
    }

    /// Keeps foreign keys whose rows reference rows of the old table, so that they do not reference other rows of the
    /// new table, or missing rows.
    private mutating func keepReferences(
        to leftover: TableState, besides table: TableState?, of owner: VersionedTable?
    ) throws {
        let references = LeftoverReferences(leftover: leftover, table: table, owner: owner, state: state)
        for reference in try references.meaningLeftover() where wanted.table(reference.child) != nil {
            keptReferences.append((reference.child, reference.column, leftover.name))
            withheld.append(
                Plan.Withheld(
                    .changeTable, table: reference.child, column: reference.column,
                    reason:
                        "the foreign key of \(reference.child) still references \(leftover.name), which contains the "
                        + "referenced rows"))
        }
    }

    /// Returns a description of an object that needs the table; foreign keys of declared tables are ignored, because
    /// they follow their declaration.
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
