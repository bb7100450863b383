internal import CipherSQLite

/// The source of an app that declares its tables with their columns.
///
/// The declaration is compared with the database itself, whatever the version says, so that a database that does not
/// match its version is repaired too.
struct DeclaredTablesSource: SchemaSource {
    private let tables: [DeclaredTable]
    private let version: Int
    private let collations: [Collation]
    private let undeclared: UndeclaredTables

    init(tables: [DeclaredTable], configuration: Configuration) {
        self.tables = tables
        version = configuration.version
        collations = configuration.collations
        var versionTable: SQLName?
        if case .table(let column) = configuration.recordedVersion { versionTable = SQLName(column.table) }
        undeclared = UndeclaredTables(
            declared: Set(tables.map { SQLName($0.name) }), policy: configuration.destructiveChanges,
            versionTable: versionTable)
    }

    func plan(for state: DatabaseState) throws -> Plan {
        try checkNames()
        let scratch = try ScratchSchema(collations: collations)
        var plan = Plan(from: state.recorded, to: version, fingerprint: fingerprint)
        for table in tables {
            let wanted = try scratch.columns(of: table)
            if let found = state.table(table.name) {
                try compare(table, wanted, found, state, scratch, &plan)
            } else {
                try checkNameIsFree(table, state)
                plan.operations.append(
                    Plan.Operation(
                        .createTable, table: table.name, sql: [table.createSQL],
                        reason: "the schema names it and the database does not have it"))
            }
        }
        let decision = try undeclared.decide(state)
        plan.operations += decision.drops
        plan.withheld += decision.withheld
        return plan
    }

    private var fingerprint: String {
        var checksum = Checksum()
        for table in tables {
            checksum.add(table.name)
            for column in table.columns {
                checksum.add(column.name)
                checksum.add(column.definition)
            }
            checksum.add("")
        }
        return checksum.text
    }

    // MARK: Names

    private func checkNames() throws {
        var seen: Set<SQLName> = []
        for table in tables {
            guard seen.insert(SQLName(table.name)).inserted else {
                throw table.failure(nil, "it is declared twice; SQLite does not tell upper case from lower case")
            }
            guard !SQLName(table.name).hasPrefix("cipherstore_") else {
                throw table.failure(nil, "names that begin with cipherstore_ are CipherStore's own")
            }
        }
    }

    private func checkNameIsFree(_ table: DeclaredTable, _ state: DatabaseState) throws {
        let name = SQLName(table.name)
        guard let object = state.objects.first(where: { $0.type != "trigger" && SQLName($0.name) == name }) else {
            return
        }
        throw StoreError(
            .migration, path: state.connection.path,
            "the table \(table.name) cannot be made: the database has \(object.type == "index" ? "an" : "a") "
                + "\(object.type) of that name",
            advice: "rename one of them; nothing was changed")
    }

    // MARK: Columns

    private func compare(
        _ table: DeclaredTable, _ wanted: [ColumnState], _ found: TableState, _ state: DatabaseState,
        _ scratch: ScratchSchema, _ plan: inout Plan
    ) throws {
        guard !found.isVirtual else {
            throw StoreError(
                .migration, path: state.connection.path,
                "\(table.name) is a virtual table in the database, and the configuration declares an ordinary one",
                advice: "take it out of the configuration; nothing was changed")
        }
        try add(table, wanted, found, state, scratch, &plan)
        for (column, shape) in zip(table.columns, wanted) {
            guard let existing = found.column(column.name), !existing.isDefined(like: shape) else { continue }
            plan.withheld.append(
                Plan.Withheld(
                    .changeColumn, table: found.name, column: existing.name,
                    reason: "declared as \(shape.definition), in the database as \(existing.definition)"))
        }
        let declared = Set(wanted.map { SQLName($0.name) })
        for column in found.columns where !declared.contains(SQLName(column.name)) {
            plan.withheld.append(
                Plan.Withheld(
                    .dropColumn, table: found.name, column: column.name, reason: "the schema does not name it"))
        }
    }

    private func add(
        _ table: DeclaredTable, _ wanted: [ColumnState], _ found: TableState, _ state: DatabaseState,
        _ scratch: ScratchSchema, _ plan: inout Plan
    ) throws {
        let missing = zip(table.columns, wanted).filter { found.column($0.0.name) == nil }
        guard !missing.isEmpty else { return }
        let holdsRows = try state.holdsRows(found.name)
        var added: [String] = []
        for (column, shape) in missing {
            try scratch.checkAdding(
                column, of: table, to: found, after: added, isVirtual: shape.generation == .virtual,
                holdsRows: holdsRows)
            added.append(column.name)
            plan.operations.append(
                Plan.Operation(
                    .addColumn, table: found.name, column: column.name, sql: [table.addSQL(column)],
                    reason: "the schema names it and the table does not have it"))
        }
    }
}
