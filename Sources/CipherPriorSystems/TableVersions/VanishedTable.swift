internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// The objects that name an old table that an upgrade by the app itself dropped.
///
/// Since SQLite 3.25, the rename that began the upgrade made views and triggers name the old table, and since 3.26
/// foreign keys too, in every case. They are broken after the old table is dropped. Each object is changed to name the
/// table to which it referred, if only one is possible; otherwise it is kept and reported. Foreign keys of declared
/// tables follow their declaration.
struct VanishedTable {
    /// The operations that recreate views and triggers, before the schema is changed.
    private(set) var before: [Plan.Operation] = []
    /// The operations that repair the foreign keys of undeclared tables, after the changes.
    private(set) var after: [Plan.Operation] = []
    private(set) var findings: [Plan.Finding] = []
    /// The state that the schema is compared with.
    private(set) var state: DatabaseState

    private let name: String
    private let wanted: WantedSchema
    private let origins: TableOrigins

    /// Finds the objects that name a dropped table.
    ///
    /// - Parameter name: A name that no table has any more.
    init(_ name: String, wanted: WantedSchema, state: DatabaseState, extensions: SQLExtensions) throws {
        self.name = name
        self.wanted = wanted
        self.state = state
        origins = try TableOrigins(of: name, wanted: wanted, state: state)
        let isUsed =
            state.tables.contains { $0.references.contains(SQLName(name)) }
            || state.objects.contains { SQLName(name).isMentioned(in: $0.sql) }
        guard isUsed, state.table(name) == nil, !state.objects.contains(where: { SQLName($0.name) == SQLName(name) })
        else { return }
        try mendObjects(extensions)
        try mendForeignKeys()
    }

    private func finding(_ subject: String, _ table: String, _ detail: String) -> Plan.Finding {
        .kept(
            subject, table: table,
            because:
                "\(detail) \(name), which an upgrade of the app dropped, and it is unclear which table should replace "
                + "\(name)")
    }

    // MARK: Views and triggers

    private mutating func mendObjects(_ extensions: SQLExtensions) throws {
        let old = SQLName(name)
        let declared = Set(wanted.objects.map(\.identity))
        let named = state.objects.filter { object in
            object.type != "index" && !declared.contains(object.identity) && old.isMentioned(in: object.sql)
        }
        guard !named.isEmpty else { return }
        let scratch = try ScratchDatabase(after: state.connection, extensions)
        let dangling = try scratch.dangling()
        let affected = named.filter { dangling.messages(about: $0).contains(where: old.isMentioned) }
        guard !affected.isEmpty else { return }
        let isColumn = state.tables.contains { $0.column(name) != nil }
        let isUnclear = isColumn && affected.contains { SQLTokens($0.sql).isUnclear(old) }
        guard scratch.isComplete, !isUnclear, let table = try owner(of: affected, dangling, in: scratch) else {
            findings += affected.map { finding("the \($0.type) \($0.name)", $0.table, "it refers to") }
            return
        }
        let mended = affected.map { object in
            var object = object
            object.sql = SQLTokens(object.sql).renamingTable(old, as: table, isColumn: isColumn)
            return object
        }
        state = state.replacing(mended)
        remake(mended, as: table)
    }

    /// Returns the only table with which all the objects can be compiled.
    ///
    /// They all refer to the same table: if a view or trigger names a missing table, SQLite does not rename another
    /// table.
    private func owner(
        of objects: [DatabaseState.Object], _ dangling: DanglingObjects, in scratch: ScratchDatabase
    ) throws -> String? {
        var fitting: [String] = []
        for table in wanted.tables where state.table(table.name) != nil {
            let shape = try TableShape(table.name, in: state.connection)
            try scratch.connection.execute(SQL(text: shape.text.createSQL(name: name)))
            let rest = try scratch.dangling()
            if objects.allSatisfy({ object in
                rest.messages(about: object).isSubset(of: dangling.messages(about: object))
                    && !rest.messages(about: object).contains(where: SQLName(name).isMentioned)
            }) {
                fitting.append(table.name)
            }
            try scratch.connection.execute("DROP TABLE main.\(identifier: name)")
        }
        return origins.latest(of: fitting)
    }

    private mutating func remake(_ mended: [DatabaseState.Object], as table: String) {
        let views = mended.filter { $0.type == "view" }
        let ofViews = Set(views.map { SQLName($0.name) })
        let triggers = mended.filter { $0.type == "trigger" }
        func reason(_ object: DatabaseState.Object) -> String {
            "the \(object.type) refers to \(name), which an upgrade of the app dropped; it should refer to \(table)"
        }
        before += triggers.filter { !ofViews.contains(SQLName($0.table)) }
            .map { operation(.dropTrigger, $0, reason($0)) }
        before += views.map { operation(.dropView, $0, reason($0)) }
        before += views.map { operation(.createView, $0, reason($0)) }
        // Dropping a view also drops its triggers.
        let dropped = Set(triggers.map { SQLName($0.name) })
        before += state.objects.filter { object in
            object.type == "trigger"
                && (ofViews.contains(SQLName(object.table)) || dropped.contains(SQLName(object.name)))
        }.map { trigger in
            let isMended = dropped.contains(SQLName(trigger.name))
            return operation(
                .createTrigger, trigger, isMended ? reason(trigger) : "the view \(trigger.table) is created again")
        }
    }

    private func operation(
        _ kind: Plan.Operation.Kind, _ object: DatabaseState.Object, _ reason: String
    ) -> Plan.Operation {
        let isDrop = kind == .dropView || kind == .dropTrigger
        let drop = "DROP \(object.type.uppercased()) main.\(SQL.quoted(identifier: object.name))"
        return Plan.Operation(
            kind, table: object.table, object: object.name, sql: [isDrop ? drop : object.sql], reason: reason)
    }

    // MARK: Foreign keys

    private mutating func mendForeignKeys() throws {
        for child in state.tables where child.references.contains(SQLName(name)) && wanted.table(child.name) == nil {
            let shape = try TableShape(child, in: state.connection)
            var text = shape.text
            var parents: Set<String> = []
            for key in shape.facts.foreignKeys where key.parent == SQLName(name) {
                guard let parent = try origins.parent(of: key, in: child.name) else {
                    findings.append(finding("the table \(child.name)", child.name, "one of its foreign keys refers to"))
                    continue
                }
                parents.insert(parent)
                for case let column?? in key.columns.map(\.first) {
                    text = text.mapping { $0.leading(column, from: SQLName(name), to: parent) }
                }
            }
            guard !parents.isEmpty else { continue }
            let own = state.objects.filter { $0.type != "view" && SQLName($0.table) == SQLName(child.name) }
            let rebuild = TableRebuild(
                of: shape, to: try wanted.scratch.shape(of: text, name: shape.name),
                temporaryName: state.freeName(for: shape), objects: own.map(\.sql))
            after.append(
                Plan.Operation(
                    .rebuildTable, table: child.name, sql: rebuild.statements,
                    reason: "foreign keys of \(child.name) refer to \(name), which an upgrade of the app dropped; they "
                        + "should refer to " + parents.sorted().joined(separator: " and ")))
        }
    }
}
