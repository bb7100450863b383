internal import CipherCatalog
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
    private var dropped: Set<DatabaseState.Object.Identity> = []
    private let comparison: SchemaComparison
    private let path: String

    init(_ comparison: SchemaComparison, _ present: PresentSchema, path: String) throws {
        self.comparison = comparison
        self.path = path
        for object in comparison.wanted.objects { try compare(object, present) }
        let named = Set(comparison.wanted.objects.map(\.identity))
        for found in present.objects where !named.contains(found.object.identity) { try decide(found) }
        restoreTriggersOfViews(present)
        // Dropping a view also drops its triggers, and they cannot be created before the view.
        drops = drops.filter { $0.kind == .dropTrigger } + drops.filter { $0.kind != .dropTrigger }
        creations = creations.filter { $0.kind != .createTrigger } + creations.filter { $0.kind == .createTrigger }
        remaining += present.objects.map(\.object).filter { !dropped.contains($0.identity) }
    }

    /// Restores the triggers of views that are recreated.
    private mutating func restoreTriggersOfViews(_ present: PresentSchema) {
        let objects = present.objects.map(\.object)
        let views = Set(objects.filter { $0.type == "view" && dropped.contains($0.identity) }.map { SQLName($0.name) })
        for trigger in objects where trigger.type == "trigger" && views.contains(SQLName(trigger.table)) {
            guard dropped.insert(trigger.identity).inserted else { continue }
            create(trigger, "the view \(trigger.table) is created again")
        }
    }

    /// Returns the indexes and triggers of a table that still exist when it is rebuilt, and are created again with it.
    func survivors(of table: PresentSchema.Table, in present: PresentSchema) -> [PresentSchema.Object] {
        present.objects(of: SQLName(table.shape.name)).filter { !dropped.contains($0.object.identity) }
    }

    // MARK: Objects of the schema

    private mutating func compare(_ object: DatabaseState.Object, _ present: PresentSchema) throws {
        guard
            let found = present.objects.first(where: {
                $0.object.identity == object.identity && $0.object.type == object.type
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
        let isOfUndeclared = isOfOther && found.object.type != "view" && !comparison.wanted.declares(found.object.table)
        if isOfUndeclared, comparison.policy == .withhold {
            withheld.append(
                Plan.Withheld(
                    .changeTable, table: object.table,
                    reason: "the \(object.type) \(object.name) is not created, because \(found.object.table) has "
                        + "\(object.type == "index" ? "an index" : "a trigger") of this name"))
            return
        }
        if isOfUndeclared { findings.append(.loss(of: found.object)) }
        drop(found.object, reason, risk: isOfUndeclared ? .removesSchema : .none)
        create(object, reason)
    }

    private func checkNameIsFree(_ object: DatabaseState.Object, _ present: PresentSchema) throws {
        let name = SQLName(object.name)
        let isTaken =
            object.type != "trigger"
            && (present.tables[name] != nil || present.objects.contains { $0.object.identity == object.identity })
        guard isTaken else { return }
        throw StoreError.nameInUse(path, making: "\(object.type) \(object.name)", besides: "another object")
    }

    // MARK: Indexes that depend on a table's difference

    /// Leaves unchanged the indexes that would contain a column that their table does not get: SQLite would treat a
    /// name in double quotes as a string.
    ///
    /// - Parameter result: The table after the changes.
    /// - Returns: Whether there are such indexes.
    mutating func withholdIndexes(of table: TableShape, lackingColumnsIn result: TableShape) -> Bool {
        let missing = table.columns.filter { result.column(SQLName($0.name)) == nil }
        let indexes = created.filter { $0.type == "index" && SQLName($0.table) == SQLName(table.name) }
        let count = withheld.count
        for index in indexes {
            let tokens = SQLTokens(index.sql)
            guard let column = missing.first(where: { tokens.contains(column: SQLName($0.name)) }) else { continue }
            func isOther(_ operation: Plan.Operation) -> Bool {
                !operation.concerns(index, index.kinds.drop) && !operation.concerns(index, index.kinds.create)
            }
            let isChange = dropped.remove(index.identity) != nil
            drops = drops.filter(isOther)
            creations = creations.filter(isOther)
            created.removeAll { $0.identity == index.identity }
            withheld.append(
                Plan.Withheld(
                    .changeTable, table: table.name,
                    reason: "the index \(index.name) is not \(isChange ? "changed" : "created"), because the column "
                        + "\(column.name) is not added"))
        }
        return withheld.count > count
    }

    /// Marks the operations that drop unique indexes without replacing them.
    mutating func noteLosses(_ lost: [DatabaseState.Object]) {
        let names = Set(lost.map { SQLName($0.name) })
        for place in drops.indices where drops[place].kind == .dropIndex {
            if let name = drops[place].object, names.contains(SQLName(name)) { drops[place].risk = .removesSchema }
        }
    }

    // MARK: Other objects

    private mutating func decide(_ found: PresentSchema.Object) throws {
        guard found.isOutdated else { return }
        try checkDoubt(found)
        drop(found.object, found.object.refersToRename)
        create(found.object, found.object.refersToRename)
    }

    /// Throws if an object that is created again may refer to something else after a rename.
    func checkDoubt(_ found: PresentSchema.Object) throws {
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
        dropped.insert(object.identity)
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
    /// Returns the finding that an index or trigger is removed.
    static func loss(of object: DatabaseState.Object) -> Plan.Finding {
        let kind = object.isUniqueIndex ? "unique index" : object.type
        return Plan.Finding(
            .removesSchema, table: object.table,
            message: "the migration removes the \(kind) \(object.name) from \(object.table)")
    }

    /// Returns the finding that a unique index accepts more rows than before.
    static func weakening(of index: DatabaseState.Object) -> Plan.Finding {
        Plan.Finding(
            .removesSchema, table: index.table,
            message: "after the migration, the unique index \(index.name) of \(index.table) accepts values that it "
                + "did not accept before")
    }
}

extension DatabaseState.Object {
    /// Whether the object is a unique index.
    var isUniqueIndex: Bool {
        type == "index" && SQLTokens(sql, first: 2).tokens.contains { $0.isKeyword("UNIQUE") }
    }

    /// The reason to create the object again after a rename.
    fileprivate var refersToRename: String { "the \(type) refers to a renamed table or column" }

    /// The operations that create and drop the object.
    var kinds: (create: Plan.Operation.Kind, drop: Plan.Operation.Kind) {
        switch type {
        case "index": (.createIndex, .dropIndex)
        case "view": (.createView, .dropView)
        default: (.createTrigger, .dropTrigger)
        }
    }
}
