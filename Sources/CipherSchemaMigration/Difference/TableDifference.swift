internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The changes that turn one table into the schema's table: none, appended columns, or a rebuild.
///
/// Nothing is lost that must be kept: the resulting table is the schema's table, with the columns and definitions that
/// are kept.
struct TableDifference {
    private(set) var operations: [Plan.Operation] = []
    private(set) var withheld: [Plan.Withheld] = []
    private(set) var findings: [Plan.Finding] = []
    /// The table after the operations.
    private(set) var result: TableShape
    private let wanted: TableShape
    private let found: PresentSchema.Table
    private let users: ColumnUsers
    private let comparison: SchemaComparison
    private let state: DatabaseState
    private let lint: ValueLint
    private let parents: [SQLName: PresentSchema.Table]
    /// The changes of the rebuild, as text.
    private var reasons: [String] = []
    private var lostColumns: [SQLName] = []
    /// The unique indexes that the migration removes or weakens.
    private(set) var lostIndexes: [DatabaseState.Object] = []
    /// The keys of the table's unique indexes after the operations.
    private var indexKeys: [TableShape.Key] = []

    init(
        _ wanted: TableShape, _ found: PresentSchema.Table, in present: PresentSchema, users: ColumnUsers,
        _ comparison: SchemaComparison, _ state: DatabaseState
    ) {
        self.wanted = wanted
        self.found = found
        self.users = users
        self.comparison = comparison
        self.state = state
        parents = present.tables
        lint = ValueLint(state, found, countsRows: state.countsRows || comparison.policy != .withhold)
        result = found.shape
    }

    private var existing: TableShape { found.shape }
    private var inherits: Set<WantedSchema.Property> { comparison.wanted.inherited[SQLName(wanted.name)] ?? [] }

    /// Compares the two tables, and adds the operations.
    ///
    /// - Parameters:
    ///   - present: The table's indexes and triggers before the changes.
    ///   - survivors: The table's indexes and triggers that a rebuild creates again.
    ///   - created: The indexes and triggers that are created afterwards.
    mutating func compare(
        present: [DatabaseState.Object], survivors: [DatabaseState.Object], created: [DatabaseState.Object]
    ) throws {
        var plan = TableTarget(wanted, existing, inherits: inherits)
        try keepColumns(in: &plan)
        try changeColumns(in: &plan)
        let target = try plan.shape(
            comparison.wanted.scratch, indexes: survivors.filter { $0.type == "index" }, path: state.connection.path)
        withheld += plan.leftOutConstraints.map { constraint in
            Plan.Withheld(
                .changeTable, table: existing.name,
                reason: "\(constraint.text) is not added, because it needs a column that is not added")
        }
        let check = try RejectedRows(lint.counting, found, target)
        let leftOut = wanted.columns.map { SQLName($0.name) }.filter { target.column($0) == nil }
        // An index of a column that is not added is withheld.
        findings += try check.duplicates(
            created.filter { index in !leftOut.contains(where: SQLTokens(index.sql).contains(column:)) })
        try compareKeys(of: present, survivors.filter { $0.type != "index" || !isLost($0) } + created, target)
        try noteLosses(lossesOfReplaced(in: target), in: target)
        guard found.isOutdated || !target.isSame(as: existing) else { return }
        result = target
        findings += try check.checkFindings()
        let ignoresChecks = try check.ignoresChecks()
        if !comparison.rowsFollow { findings += try check.references(to: parents, in: comparison.wanted) }
        let meanings = changedMeanings(target)
        findings += capturedStrings(in: survivors, target) + meanings
        noteLosses(existing.losses(in: target, indexes: indexKeys), in: target)
        let enforcesChecks = Engine.current.enforcesAddedChecks || check.knowsChecks
        if meanings.isEmpty, enforcesChecks, try addColumns(target, ignoresChecks) { return }
        let kept = survivors.filter { $0.type != "index" || !isLost($0) }
        for index in survivors where !kept.contains(index) {
            reasons.append("the index \(index.name) uses a dropped column and is also dropped")
        }
        findings += try check.duplicates(kept)
        findings += try RejectedValues(lint: lint.counting, existing: existing, target: target).findings()
        rebuild(target, kept, ignoresChecks)
    }

    /// Compares the unique indexes before and after the changes, because the collation of a column also applies to its
    /// indexes.
    private mutating func compareKeys(
        of present: [DatabaseState.Object], _ remaining: [DatabaseState.Object], _ target: TableShape
    ) throws {
        let unique = [present, remaining].map { $0.filter(\.isUniqueIndex) }
        guard unique[0] != unique[1] || !target.isSame(as: existing) else { return }
        let scratch = comparison.wanted.scratch
        indexKeys = try scratch.uniqueKeys(of: remaining, on: target).map(\.key)
        for (index, key) in try scratch.uniqueKeys(of: present, on: existing) where !target.replaces(key, indexKeys) {
            lostIndexes.append(index)
            let isKept = unique[1].contains { $0.identity == index.identity }
            findings.append(isKept ? .weakening(of: index) : .loss(of: index))
        }
    }

    /// Finds indexes that contain a string in double quotes, which would become the name of a new column: SQLite would
    /// then expect different entries in the index.
    private func capturedStrings(in indexes: [DatabaseState.Object], _ target: TableShape) -> [Plan.Finding] {
        let added = target.columns.filter { existing.column(SQLName($0.name)) == nil }
        return indexes.filter { $0.type == "index" }.flatMap { index in
            added.filter { SQLTokens(index.sql).mayContain(string: SQLName($0.name)) }
                .map { .capture(of: $0.name, in: index, table: existing.name) }
        }
    }

    /// Finds unchanged expressions with a name in double quotes that is a string in one of the tables and a column's name
    /// in the other.
    ///
    /// A CHECK would accept different rows, and a generated column would get different values.
    private func changedMeanings(_ target: TableShape) -> [Plan.Finding] {
        let unchanged = target.facts.checks.union(target.facts.generated.values)
        return [("CHECK", Plan.Finding.Severity.removesSchema), ("AS", .impossible)].flatMap { keyword, severity in
            existing.text.items.flatMap { $0.expressions(after: keyword) }.flatMap { expression -> [Plan.Finding] in
                let all = SQLTokens(expression)
                guard unchanged.contains(all.tokens.map(\.normalized)) else { return [] }
                let names = all.tokens.indices.filter { !all.isOtherName($0) }.map { all.tokens[$0] }
                return names.filter(all.isInDoubleQuotes).compactMap { token in
                    let uses = [existing, target].map { table in
                        table.column(SQLName(token.content)) == nil ? "a string" : "the name of a column"
                    }
                    guard uses[0] != uses[1] else { return nil }
                    return Plan.Finding(
                        severity, table: existing.name,
                        message: "\(keyword) (\(expression)) of \(existing.name) contains \"\(token.content)\" as "
                            + "\(uses[0]), which the migration would turn into \(uses[1])")
                }
            }
        }
    }

    /// Returns whether an index contains a column that is dropped, because SQLite drops it with the column.
    private func isLost(_ index: DatabaseState.Object) -> Bool {
        let tokens = SQLTokens(index.sql)
        return lostColumns.contains(where: tokens.contains(column:))
    }

    /// Names the constraints that the table loses because the schema does not declare them.
    private mutating func noteLosses(_ losses: [TableShape.Loss], in target: TableShape) {
        let stated = comparison.wanted.stated[SQLName(wanted.name)] ?? []
        for loss in losses {
            // The constraints of a column that is dropped are dropped with it.
            if !loss.columns.isEmpty, loss.columns.allSatisfy({ target.column($0) == nil }) { continue }
            let finding = Plan.Finding(
                loss.isStated || stated.contains(loss.property) ? .note : .removesSchema, table: existing.name,
                column: loss.columns.count == 1 ? target.column(loss.columns[0])?.name : nil,
                message: "the migration removes \(loss.text) from \(existing.name)")
            guard !findings.contains(finding) else { continue }
            findings.append(finding)
            reasons.append("\(loss.text) is removed")
        }
    }

    /// Returns the losses of an empty table or column that a rename replaces.
    private func lossesOfReplaced(in target: TableShape) throws -> [TableShape.Loss] {
        var losses: [TableShape.Loss] = []
        // In a chain of renames, the table of that name is not replaced but renamed.
        if SQLName(found.name) != SQLName(existing.name),
            !parents.values.contains(where: { SQLName($0.name) == SQLName(existing.name) }),
            let table = state.table(existing.name)
        {
            losses += try TableShape(table, in: state.connection).losses(in: target, indexes: indexKeys)
        }
        if !found.replacedColumns.isEmpty, let table = state.table(found.name) {
            losses += try TableShape(table, in: state.connection).losses(in: target, indexes: indexKeys)
                .filter { $0.columns.contains(where: found.replacedColumns.contains) }
        }
        return losses
    }

    // MARK: Columns that the schema does not have

    private mutating func keepColumns(in target: inout TableTarget) throws {
        for column in existing.columns where wanted.column(SQLName(column.name)) == nil {
            let user = users.user(of: column.name, in: existing.name)
            let kept = found.keptColumns[SQLName(column.name)]
            if comparison.policy == .withhold || user != nil || kept != nil {
                // A launch without a migration does not read whole columns.
                let values = state.countsRows ? try lint.values(of: column) : ValueLint.Count(number: nil)
                let reason =
                    kept.map { ", and \($0)" } ?? user.map { ", but \($0) needs it" } ?? values.number.map { _ in
                        "; it contains \(values.of("value"))"
                    }
                    ?? ""
                withheld.append(
                    Plan.Withheld(
                        .dropColumn, table: existing.name, column: column.name, rows: values.number,
                        reason: "the column is not in the schema\(reason)"))
                target.keep(SQLName(column.name))
                try keepValues(of: column, in: &target)
            } else {
                let values = try lint.values(of: column)
                let name = "\(existing.name).\(column.name)"
                findings.append(
                    Plan.Finding(
                        values.isZero ? .removesSchema : .losesData, table: existing.name, column: column.name,
                        count: values.number,
                        message: values.isZero
                            ? "the migration drops \(name), which contains no values"
                            : "the migration drops \(values.of("non-NULL value")) of \(name)")
                )
                target.lose(SQLName(column.name))
                lostColumns.append(SQLName(column.name))
                reasons.append("the column \(column.name) is dropped")
            }
        }
    }

    /// Keeps the table strict if a kept column of type ANY would otherwise convert its values.
    private mutating func keepValues(of column: ColumnState, in target: inout TableTarget) throws {
        let (old, new) = (affinity(of: column), newAffinity(of: column))
        guard old != new else { return }
        let changed = try lint.changed(by: new, in: SQLName(column.name), from: old)
        guard !changed.isZero else { return }
        target.keepStrictness()
        withheld.append(
            Plan.Withheld(
                .changeTable, table: existing.name, rows: changed.number,
                reason: "the schema declares the table without STRICT, but removing STRICT would alter "
                    + "\(changed.of("value")) of \(column.name)"))
    }

    // MARK: Columns that are defined differently

    private mutating func changeColumns(in target: inout TableTarget) throws {
        var withheldKeyColumn: SQLName?
        var changes: [(column: SQLName, reason: String)] = []
        for column in wanted.columns {
            let name = SQLName(column.name)
            guard let old = existing.column(name) else { continue }
            let isChanged = !wanted.defines(name, like: existing)
            guard isChanged || affinity(of: old) != newAffinity(of: column) else { continue }
            let (new, present) = (wanted.definition(of: column), existing.definition(of: old))
            func difference(of subject: String) -> String {
                isChanged
                    ? "\(subject) is declared as \(new) in the schema, but as \(present) in the database"
                    : "the schema declares the table without STRICT"
            }
            let changed = try changedValues(old, column)
            if !changed.isZero, comparison.policy == .withhold {
                withheld.append(
                    Plan.Withheld(
                        .changeColumn, table: existing.name, column: old.name, rows: changed.number,
                        reason: "\(difference(of: "the column")); the change would alter \(changed.of("value"))"))
                target.keepDefinition(of: name)
                // Without STRICT, the column would convert values, whatever its definition.
                if affinity(of: old) != Affinity(old.type) { target.keepStrictness() }
                if old.primaryKeyPosition != 0 || column.primaryKeyPosition != 0 { withheldKeyColumn = name }
                continue
            }
            if !changed.isZero {
                findings.append(
                    Plan.Finding(
                        .losesData, table: existing.name, column: old.name, count: changed.number,
                        message: "the migration alters \(changed.of("value")) of \(existing.name).\(old.name): "
                            + difference(of: "the column")))
            }
            if isChanged { changes.append((name, difference(of: "the column \(old.name)"))) }
        }
        let kept = withheldKeyColumn.map { keepKey(in: &target, because: $0) } ?? []
        reasons += changes.filter { !kept.contains($0.column) }.map(\.reason)
    }

    /// Keeps the whole primary key: if only a part of it changed, the table would be left without a key, or with half
    /// of a key.
    ///
    /// - Returns: The other columns that keep their definition with the key.
    private mutating func keepKey(in target: inout TableTarget, because withheldColumn: SQLName) -> Set<SQLName> {
        target.keepKey()
        var kept: Set<SQLName> = []
        let reason = "the primary key is not changed, because the change to \(withheldColumn.text) is withheld"
        for column in wanted.columns where SQLName(column.name) != withheldColumn {
            let name = SQLName(column.name)
            let old = existing.column(name)
            guard column.primaryKeyPosition != 0 || old.map({ $0.primaryKeyPosition != 0 }) == true,
                !wanted.defines(name, like: existing)
            else { continue }
            if old == nil {
                target.leaveOut(name)
            } else {
                target.keepDefinition(of: name)
            }
            kept.insert(name)
            guard !withheld.contains(where: { $0.column.map(SQLName.init) == name }) else { continue }
            withheld.append(
                Plan.Withheld(
                    .changeColumn, table: existing.name, column: old?.name ?? column.name, reason: reason))
        }
        while let (column, needed) = target.withholdDependent() {
            kept.insert(column)
            withheld.append(
                Plan.Withheld(
                    .changeColumn, table: existing.name, column: wanted.column(column)?.name,
                    reason: "the column depends on the column \(needed.text), which is not added"))
        }
        return kept
    }

    /// Counts the values that would not be restored if the change were undone.
    private func changedValues(_ old: ColumnState, _ new: ColumnState) throws -> ValueLint.Count {
        if new.generation != nil { return try lint.values(of: old) }
        guard affinity(of: old) != newAffinity(of: new) else { return ValueLint.Count(number: 0) }
        return try lint.changed(by: newAffinity(of: new), in: SQLName(new.name), from: affinity(of: old))
    }

    private func affinity(of column: ColumnState) -> Affinity { column.affinity(isStrict: existing.facts.isStrict) }

    private func newAffinity(of column: ColumnState) -> Affinity {
        column.affinity(isStrict: (inherits.contains(.strictness) ? existing : wanted).facts.isStrict)
    }

    // MARK: Operations

    /// Appends the missing columns, if nothing else differs and SQLite can append them.
    private mutating func addColumns(_ target: TableShape, _ ignoresChecks: Bool) throws -> Bool {
        let missing = target.columns.filter { existing.column(SQLName($0.name)) == nil }
        guard !missing.isEmpty, !found.isOutdated, try differsOnly(by: missing, target) else { return false }
        let holdsRows = try state.holdsRows(found.name)
        var added: [Plan.Operation] = []
        for column in missing {
            guard let item = target.text.column(SQLName(column.name)),
                try comparison.wanted.scratch.canAdd(
                    item, to: existing, after: added.compactMap(\.column),
                    isVirtual: column.generation == .virtual, holdsRows: holdsRows)
            else { return false }
            let sql = "ALTER TABLE \(SQL.quoted(identifier: existing.name)) ADD COLUMN \(item.text)"
            let testsRows =
                target.facts.isStrict || column.isNotNull && column.generation != nil
                || !item.expressions(after: "CHECK").isEmpty
            added.append(
                Plan.Operation(
                    .addColumn, table: existing.name, column: column.name,
                    sql: testsRows && ignoresChecks ? target.ignoringChecks([sql]) : [sql],
                    reason: "the column is in the schema but not in the table"))
        }
        operations += added
        return true
    }

    private func differsOnly(by missing: [ColumnState], _ target: TableShape) throws -> Bool {
        let names = Set(missing.map { SQLName($0.name) })
        var text = target.text
        text.items.removeAll { item in item.column.map { names.contains(SQLName($0)) } ?? false }
        do {
            return try comparison.wanted.scratch.shape(of: text, name: existing.name).isSame(as: existing)
        } catch is DatabaseError {
            // For example, a constraint names a missing column.
            return false
        }
    }

    /// The column names in the existing table.
    ///
    /// An engine that renames columns itself has already renamed them before a rebuild.
    private var columnSources: [SQLName: String] {
        guard !found.keepsOldColumns else { return found.columns }
        return found.columns.filter { found.replacedColumns.contains($0.key) }
    }

    /// The options that the table gains or loses.
    private func options(_ target: TableShape) -> [String] {
        [
            ("AUTOINCREMENT", existing.facts.isAutoincrement, target.facts.isAutoincrement),
            ("WITHOUT ROWID", existing.facts.isWithoutRowID, target.facts.isWithoutRowID),
            ("STRICT", existing.facts.isStrict, target.facts.isStrict),
        ].compactMap { option, had, has in
            had == has ? nil : "the table \(has ? "gains" : "loses") the option \(option)"
        }
    }

    private mutating func rebuild(
        _ target: TableShape, _ survivors: [DatabaseState.Object], _ ignoresChecks: Bool
    ) {
        let missing = target.columns.filter { existing.column(SQLName($0.name)) == nil }
            .map { "the column \($0.name) is missing" }
        let renamed = found.isOutdated ? ["the table refers to a renamed table or column"] : []
        let all = reasons + options(target) + missing + renamed
        operations.append(
            Plan.Operation(
                .rebuildTable, table: existing.name,
                sql: TableRebuild(
                    of: existing, to: target, temporaryName: state.freeName(for: existing),
                    renamedColumns: columnSources,
                    objects: survivors.map(\.sql), ignoresChecks: ignoresChecks
                ).statements,
                reason: all.isEmpty
                    ? "the table's constraints differ from those in the schema" : all.joined(separator: "; "),
                risk: findings.contains { $0.severity == .losesData }
                    ? .losesData : findings.contains { $0.severity == .removesSchema } ? .removesSchema : .none))
    }
}
