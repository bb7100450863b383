internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The changes to indexes, views and triggers: those that differ are dropped before the tables are changed, and created
/// afterwards.
struct ObjectDifference {
    private(set) var drops: [Plan.Operation] = []
    private(set) var creations: [Plan.Operation] = []
    private(set) var withheld: [Plan.Withheld] = []
    private(set) var findings: [Plan.Finding] = []
    /// The indexes, views and triggers that will exist afterwards.
    private(set) var remaining: [DatabaseState.Object] = []
    /// The indexes, views and triggers that are created.
    private(set) var created: [DatabaseState.Object] = []
    private var dropped: Set<SQLName> = []
    private let comparison: SchemaComparison
    private let path: String

    init(_ comparison: SchemaComparison, _ present: PresentSchema, path: String) throws {
        self.comparison = comparison
        self.path = path
        for object in comparison.wanted.objects { try compare(object, present) }
        let named = Set(comparison.wanted.objects.map { SQLName($0.name) })
        for found in present.objects where !named.contains(SQLName(found.object.name)) { try decide(found) }
        restoreTriggersOfViews(present)
        // Dropping a view also drops its triggers, and they cannot be created before the view.
        drops = drops.filter { $0.kind == .dropTrigger } + drops.filter { $0.kind != .dropTrigger }
        creations = creations.filter { $0.kind != .createTrigger } + creations.filter { $0.kind == .createTrigger }
        remaining += present.objects.map(\.object).filter { !dropped.contains(SQLName($0.name)) }
    }

    /// Restores the triggers of views that are recreated.
    private mutating func restoreTriggersOfViews(_ present: PresentSchema) {
        let views = Set(creations.filter { $0.kind == .createView }.compactMap { $0.object.map(SQLName.init) })
        for trigger in present.objects.map(\.object) where trigger.type == "trigger" {
            guard views.contains(SQLName(trigger.table)), dropped.contains(SQLName(trigger.table)),
                dropped.insert(SQLName(trigger.name)).inserted
            else { continue }
            create(trigger, "the view \(trigger.table) is created again")
        }
    }

    /// Returns the indexes and triggers of a table that still exist when it is rebuilt, and are created again with it.
    func survivors(of table: PresentSchema.Table, in present: PresentSchema) throws -> [DatabaseState.Object] {
        let own = present.objects(of: SQLName(table.shape.name)).filter { !dropped.contains(SQLName($0.object.name)) }
        for object in own { try checkDoubt(object) }
        return own.map(\.object)
    }

    // MARK: Objects of the schema

    private mutating func compare(_ object: DatabaseState.Object, _ present: PresentSchema) throws {
        let name = SQLName(object.name)
        guard
            let found = present.objects.first(where: {
                SQLName($0.object.name) == name && $0.object.type == object.type
            })
        else {
            try checkNameIsFree(object, present)
            create(object, "the \(object.type) is in the schema but not in the database")
            return
        }
        let isSame = SQLTokens.normalized(found.object.sql) == SQLTokens.normalized(object.sql)
        guard !isSame || found.isOutdated else { return }
        let reason =
            isSame
            ? object.refersToRename
            : "the \(object.type) is defined differently in the schema and in the database"
        let isOfOther = SQLName(found.object.table) != SQLName(object.table)
        let isOfUndeclared =
            found.object.type == "index" && isOfOther && comparison.wanted.table(found.object.table) == nil
        if isOfUndeclared, comparison.policy == .withhold {
            withheld.append(
                Plan.Withheld(
                    .changeTable, table: object.table,
                    reason: "the index \(object.name) is not created, because \(found.object.table) has an index of "
                        + "this name"))
            return
        }
        let isLost = isOfUndeclared || found.object.isUniqueIndex && (isOfOther || !object.isUniqueIndex)
        if isLost { findings.append(.loss(ofIndex: found.object)) }
        drop(found.object, reason, risk: isLost ? .removesSchema : .none)
        create(object, reason)
    }

    private func checkNameIsFree(_ object: DatabaseState.Object, _ present: PresentSchema) throws {
        let name = SQLName(object.name)
        let isTaken =
            object.type != "trigger"
            && (present.tables[name] != nil
                || present.objects.contains { $0.object.type != "trigger" && SQLName($0.object.name) == name })
        guard isTaken else { return }
        throw StoreError.nameInUse(path, making: "\(object.type) \(object.name)", besides: "another object")
    }

    // MARK: Other objects

    private mutating func decide(_ found: PresentSchema.Object) throws {
        guard found.isOutdated else { return }
        try checkDoubt(found)
        drop(found.object, found.object.refersToRename)
        create(found.object, found.object.refersToRename)
    }

    private func checkDoubt(_ found: PresentSchema.Object) throws {
        guard let doubt = found.doubt else { return }
        throw StoreError(
            .migration, path: path,
            "the \(found.object.type) \(found.object.name) contains the name \(doubt), which may or may not refer "
                + "to the renamed table or column",
            advice: "declare the \(found.object.type) in the schema, or drop it", changed: .nothing)
    }

    // MARK: Operations

    private mutating func drop(
        _ object: DatabaseState.Object, _ reason: String, risk: Plan.Operation.Risk = .none
    ) {
        dropped.insert(SQLName(object.name))
        drops.append(
            Plan.Operation(
                object.kinds.drop, table: object.table, object: object.name,
                sql: ["DROP \(object.type.uppercased()) \(SQL.quoted(identifier: object.name))"], reason: reason,
                risk: risk))
    }

    private mutating func create(_ object: DatabaseState.Object, _ reason: String) {
        remaining.append(object)
        created.append(object)
        creations.append(
            Plan.Operation(
                object.kinds.create, table: object.table, object: object.name, sql: [object.sql], reason: reason))
    }
}

extension Plan.Finding {
    /// Returns the finding that an index is removed.
    static func loss(ofIndex index: DatabaseState.Object) -> Plan.Finding {
        let kind = index.isUniqueIndex ? "unique index" : "index"
        return Plan.Finding(
            .removesSchema, table: index.table,
            message: "the migration removes the \(kind) \(index.name) from \(index.table)")
    }
}

extension DatabaseState.Object {
    /// Whether the object is a unique index.
    var isUniqueIndex: Bool {
        type == "index" && SQLTokens(sql, first: 2).tokens.contains { $0.isKeyword("UNIQUE") }
    }

    /// The reason to create the object again after a rename.
    fileprivate var refersToRename: String { "the \(type) refers to a renamed table or column" }

    fileprivate var kinds: (create: Plan.Operation.Kind, drop: Plan.Operation.Kind) {
        switch type {
        case "index": (.createIndex, .dropIndex)
        case "view": (.createView, .dropView)
        default: (.createTrigger, .dropTrigger)
        }
    }
}
