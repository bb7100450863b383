internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// One run of a ``SchemaComparison``.
struct SchemaDifference {
    let comparison: SchemaComparison
    let state: DatabaseState
    var present: PresentSchema
    private var changes = SchemaChanges()
    private var tables: [Plan.Operation] = []
    /// The tables that the schema names, as they will be after the changes.
    private var results: [SQLName: TableShape] = [:]
    /// The unnamed tables that an earlier run of the comparison drops, so that their foreign keys and triggers need no
    /// column.
    private let dropped: Set<SQLName>

    init(_ comparison: SchemaComparison, _ state: DatabaseState, dropping dropped: Set<SQLName>) throws {
        self.comparison = comparison
        self.state = state
        self.dropped = dropped
        present = try PresentSchema(state)
    }

    private var wanted: WantedSchema { comparison.wanted }

    /// Returns the changes, and the unnamed tables that they drop.
    mutating func compare() throws -> (SchemaChanges, dropped: Set<SQLName>) {
        changes.notes += try SchemaRenames(wanted: wanted, state: state).apply(to: &present)
        changes.origins = present.origins
        changes.declared = Set(wanted.objects.map(\.identity))
        changes.findings += BrokenReaders(state: state).findings(afterRenamesIn: present)
        var objects = try ObjectDifference(comparison, present, path: state.connection.path)
        for virtual in wanted.virtualTables { try compareVirtual(virtual) }
        for table in wanted.tables { results[SQLName(table.name)] = table }
        // A full-text index may read its rows from another table.
        let virtual = state.tables.filter(\.isVirtual).map {
            DatabaseState.Object(type: "virtual table", name: $0.name, table: $0.name, sql: $0.sql ?? "")
        }
        let users = ColumnUsers(
            objects: objects.remaining.filter { $0.type == "view" || !dropped.contains(SQLName($0.table)) } + virtual,
            tables: present.tables.filter { !dropped.contains($0.key) }.map { results[$0.key] ?? $0.value.shape })
        for table in wanted.tables { try compare(table, &objects, users) }
        changes.withheld = objects.withheld + changes.withheld
        changes.findings = objects.findings + changes.findings
        try rebuildOutdated(objects)
        let unnamed = try UnnamedTables(
            comparison, state, named: results,
            unnamed: present.tables.filter { results[$0.key] == nil }.mapValues(\.shape),
            kept: present.tables.compactMapValues(\.reasonToKeep), objects: objects.remaining + virtual)
        changes.withheld += unnamed.withheld
        changes.findings += unnamed.findings
        let droppedTables = Set(unnamed.drops.compactMap { $0.table.map(SQLName.init) })
        changes.operations =
            objects.drops + present.operations + tables + unnamed.drops
            // SQLite drops the indexes and triggers of a dropped table.
            + objects.creations.filter { $0.table.map { !droppedTables.contains(SQLName($0)) } ?? true }
        return (changes, droppedTables)
    }

    // MARK: Tables

    private mutating func compare(
        _ table: TableShape, _ objects: inout ObjectDifference, _ users: ColumnUsers
    ) throws {
        guard let found = present.tables[SQLName(table.name)] else {
            try checkNameIsFree(table)
            tables.append(
                Plan.Operation(
                    .createTable, table: table.name, sql: [table.sql],
                    reason: "the table is in the schema but not in the database"))
            return
        }
        var difference = try compare(table, found, objects, users)
        if objects.withholdIndexes(of: table, lackingColumnsIn: difference.result) {
            difference = try compare(table, found, objects, users)
        }
        objects.noteLosses(difference.lostIndexes)
        if difference.operations.contains(where: { $0.kind == .rebuildTable }) {
            for survivor in objects.survivors(of: found, in: present) { try objects.checkDoubt(survivor) }
        }
        if !difference.operations.isEmpty || !found.columns.isEmpty {
            changes.findings += try BrokenReaders(state: state).findings(after: difference.result, of: found)
        }
        results[SQLName(table.name)] = difference.result
        tables += difference.operations
        changes.withheld += difference.withheld
        changes.findings += difference.findings
    }

    private func compare(
        _ table: TableShape, _ found: PresentSchema.Table, _ objects: ObjectDifference, _ users: ColumnUsers
    ) throws -> TableDifference {
        var difference = TableDifference(table, found, in: present, users: users, comparison, state)
        try difference.compare(
            present: present.objects(of: SQLName(table.name)).map(\.object),
            survivors: objects.survivors(of: found, in: present).map(\.object),
            created: objects.created.filter { SQLName($0.table) == SQLName(table.name) })
        return difference
    }

    /// Rebuilds tables outside the schema that a rename affects, if the engine does not apply the rename to them.
    private mutating func rebuildOutdated(_ objects: ObjectDifference) throws {
        let named = Set(wanted.tables.map { SQLName($0.name) })
        let outdated = present.tables.filter { $0.value.isOutdated && !named.contains($0.key) }
        for table in outdated.values.sorted(by: { $0.name < $1.name }) {
            let survivors = objects.survivors(of: table, in: present)
            for survivor in survivors { try objects.checkDoubt(survivor) }
            tables.append(
                Plan.Operation(
                    .rebuildTable, table: table.shape.name,
                    sql: TableRebuild(
                        of: table.shape, to: table.shape, temporaryName: state.freeName(for: table.shape),
                        objects: survivors.map(\.object.sql)
                    ).statements,
                    reason: "the table refers to a renamed table or column, and this version of SQLite does not update "
                        + "the reference"))
        }
    }

    private mutating func compareVirtual(_ table: WantedSchema.Object) throws {
        let sameName = try state.connection.value(
            String.self, "SELECT sql FROM main.sqlite_master WHERE name = \(table.name) COLLATE NOCASE")
        guard let sql = sameName else {
            tables.append(
                Plan.Operation(
                    .createTable, table: table.name, sql: [table.sql],
                    reason: "the table is in the schema but not in the database"))
            return
        }
        if SQLTokens.normalized(sql) != SQLTokens.normalized(table.sql) {
            changes.withheld.append(
                Plan.Withheld(
                    .changeTable, table: table.name, reason: "virtual tables are never rebuilt"))
        }
    }

    private func checkNameIsFree(_ table: TableShape) throws {
        let name = SQLName(table.name)
        guard state.table(table.name)?.isVirtual != true else {
            throw StoreError(
                .migration, path: state.connection.path,
                "\(table.name) is a virtual table in the database, but an ordinary table in the schema",
                advice: "remove the table from the schema", changed: .nothing)
        }
        guard let object = state.objects.first(where: { $0.type != "trigger" && SQLName($0.name) == name }) else {
            return
        }
        throw StoreError.nameInUse(
            state.connection.path, making: "table \(table.name)",
            besides: "\(object.type == "index" ? "an" : "a") \(object.type)")
    }
}
