internal import CipherSQLite

/// Counts what the app's own SQL and Swift does to the rows of a database.
///
/// Before a statement runs, SQLite has told which tables it touches, and they are counted then; what became of them is
/// counted when the operation has ended. Rows are counted and not compared: values that are written over, and rows that one
/// closure replaces by as many others, do not show.
final class StepCensus {
    private typealias Name = TableCount.Name

    private let connection: Connection
    /// Whether tables are counted too that rows are only added to.
    private let countsAdditions: Bool
    /// The tables that hold rows of the app's users: those that were there before the migration, and those that rows of
    /// theirs were copied to.
    private var users: Set<Name>
    /// Where rows of a table were copied to.
    private var copies: [Name: [Copy]] = [:]

    /// What statements took from one table and wrote to another.
    private struct Copy {
        var target: Name
        /// The columns that were read.
        let columns: Set<SQLName>
        /// How many rows of them are not gone from where they were.
        var rows: Int
    }

    /// What the statements of one operation have touched.
    private struct Touched {
        /// As it was before the first of them; `nil` for a table that was not there.
        var first: [Name: TableCount?] = [:]
        /// As it was before the first of them that could take something away.
        var base: [Name: TableCount] = [:]
        var altered: Set<Name> = []
    }

    /// A statement that reads tables and writes another.
    private struct Copying {
        let target: Name
        /// The tables that are read, with the columns.
        let sources: [Name: Set<SQLName>]
        /// Whether it makes the table too.
        let isNew: Bool
    }

    private var touched = Touched()
    /// The latest statement, which has run when the next one is compiled.
    private var copying: Copying?
    private var actions: [StatementAction] = []
    private var isCounting = false

    /// - Parameter countsAdditions: Whether tables are counted too that rows are only added to.
    init(_ state: DatabaseState, countsAdditions: Bool) {
        connection = state.connection
        self.countsAdditions = countsAdditions
        users = Set(state.tables.map { Name($0.name) })
    }

    /// What an operation did.
    struct Outcome {
        var effects: [Plan.TableEffect]
        /// What users lost by it.
        var losses: [Plan.Finding]
    }

    /// Runs an operation, which `run` gives what its statements have to be told to.
    func observing(
        _ operation: Plan.Operation,
        _ run: (_ note: @escaping (StatementAction) -> Void, _ compiled: @escaping ([UInt8]) throws -> Void) throws ->
            Void
    ) throws -> Outcome {
        touched = Touched()
        actions = []
        copying = nil
        try run({ [self] in if !isCounting { actions.append($0) } }, { [self] in try countBefore($0) })
        isCounting = true
        defer { isCounting = false }
        return try connection.withinStepsForRows {
            try noteCopy()
            return try outcome(of: operation)
        }
    }

    // MARK: Before

    private func countBefore(_ sql: [UInt8]) throws {
        // What is asked here is compiled too.
        guard !isCounting else { return }
        isCounting = true
        defer { isCounting = false }
        let actions = actions
        self.actions = []
        // Pages that lead back to each other would be counted for ever.
        try connection.withinStepsForRows { try countBefore(actions, sql) }
    }

    private func countBefore(_ actions: [StatementAction], _ sql: [UInt8]) throws {
        try noteCopy()
        copying = Self.copying(actions)
        let mayReplace = String(decoding: sql, as: UTF8.self).isLike("%replace%")
        for action in actions {
            let name = Name(action.subject, in: action.schema ?? "main")
            guard !name.isOfSystem, action.subject != "" else { continue }
            switch action.kind {
            case .createTable:
                if touched.first[name] == nil { touched.first[name] = .some(nil) }
            case .insert: try countBefore(name, mayLose: mayReplace || action.cause != nil)
            case .alterTable:
                touched.altered.insert(name)
                try countBefore(name, mayLose: true)
            case .update, .delete, .dropTable: try countBefore(name, mayLose: true)
            default: continue
            }
        }
    }

    private func countBefore(_ name: Name, mayLose: Bool) throws {
        if touched.base[name] != nil || (!mayLose && touched.first[name] != nil) { return }
        let mayLose = try mayLose || TableCount.replacesRows(name, connection)
        guard mayLose || countsAdditions else { return }
        let count = try TableCount(name, connection, countsValues: mayLose)
        if touched.first[name] == nil { touched.first[name] = .some(count) }
        if mayLose, let count { touched.base[name] = count }
    }

    // MARK: Copies

    /// What a statement copies from tables to another; what a trigger reads is copied by nobody.
    private static func copying(_ actions: [StatementAction]) -> Copying? {
        var target: (name: Name, isNew: Bool)?
        var sources: [Name: Set<SQLName>] = [:]
        for action in actions where action.cause == nil {
            let name = Name(action.subject, in: action.schema ?? "main")
            guard !name.isOfSystem else { continue }
            switch action.kind {
            case .read: sources[name, default: []].insert(SQLName(action.detail ?? ""))
            case .insert: target = (name, false)
            case .createTable: target = (name, true)
            default: continue
            }
        }
        guard let target else { return nil }
        sources[target.name] = nil
        return sources.isEmpty ? nil : Copying(target: target.name, sources: sources, isNew: target.isNew)
    }

    /// Notes how many rows the latest statement copied.
    private func noteCopy() throws {
        guard let copying else { return }
        self.copying = nil
        // A table that is made of a query's rows is not in the count of changes.
        let rows =
            try copying.isNew
            ? TableCount(copying.target, connection, countsValues: false)?.rows ?? 0 : connection.changes
        for (source, columns) in copying.sources where rows > 0 && users.contains(source) {
            copies[source, default: []].append(Copy(target: copying.target, columns: columns, rows: rows))
            users.insert(copying.target)
        }
    }

    // MARK: After

    private func outcome(of operation: Plan.Operation) throws -> Outcome {
        var after: [Name: TableCount] = [:]
        var renamed: [Name: Name] = [:]
        for name in touched.first.keys {
            let countsValues = touched.base[name] != nil
            after[name] = try TableCount(name, connection, countsValues: countsValues)
            guard after[name] == nil, touched.altered.contains(name), let root = touched.base[name]?.root,
                let new = try table(at: root, in: name)
            else { continue }
            renamed[name] = new
            after[name] = try TableCount(new, connection, countsValues: true)
        }
        var outcome = Outcome(effects: [], losses: [])
        for (name, before) in touched.first.sorted(by: { $0.key.table.text < $1.key.table.text }) {
            let effect = Self.effect(before, touched.base[name] ?? before, after[name], isRenamed: renamed[name] != nil)
            if let effect, effect.isChange { outcome.effects.append(effect) }
            if users.contains(name), let base = touched.base[name] {
                outcome.losses += try losses(of: name, base, after[name], operation)
            }
        }
        for (old, new) in renamed { rename(old, new) }
        for name in touched.first.keys where after[name] == nil { users.remove(name) }
        return outcome
    }

    /// The table that SQLite keeps at a page, which a rename does not change.
    private func table(at root: Int, in name: Name) throws -> Name? {
        let schema = SQL(text: SQL.quoted(identifier: name.schema.text))
        return try connection.value(
            String.self, "SELECT name FROM \(schema).sqlite_master WHERE type = 'table' AND rootpage = \(root)"
        ).map { Name($0, in: name.schema.text) }
    }

    private func rename(_ old: Name, _ new: Name) {
        if users.remove(old) != nil { users.insert(new) }
        if let made = copies.removeValue(forKey: old) { copies[new] = made }
        for source in copies.keys {
            copies[source] = copies[source]?.map { copy in
                var copy = copy
                if copy.target == old { copy.target = new }
                return copy
            }
        }
    }

    // MARK: Losses

    private func losses(
        of name: Name, _ before: TableCount, _ after: TableCount?, _ operation: Plan.Operation
    ) throws -> [Plan.Finding] {
        let place = operation.subject
        func finding(
            _ severity: Plan.Finding.Severity, column: String? = nil, _ count: Int, _ message: String
        ) -> Plan.Finding {
            Plan.Finding(
                severity, table: before.table, column: column, count: count, message: "\(place) \(message)")
        }
        let gone = before.rows - (after?.rows ?? 0)
        let (copied, sources) = takeCopies(of: name, max(gone, 0))
        var findings: [Plan.Finding] = []
        if after == nil, before.rows == 0 {
            findings.append(finding(.removesSchema, 0, "drops the table \(before.table), which holds no row"))
        } else if gone > copied {
            let rows = Self.rows(gone - copied)
            let isWhole = copied == 0 && after == nil
            findings.append(
                finding(
                    .losesData, gone - copied,
                    isWhole
                        ? "drops the table \(before.table) with \(rows)"
                        : "\(after == nil ? "drops the table" : "deletes from") \(before.table) \(rows) of "
                            + "\(before.rows)\(copied > 0 ? ", and \(copied) of them were copied before" : "")"))
        }
        // What goes with rows that are told of needs no word of its own.
        guard gone <= copied else { return findings }
        for (index, value) in (before.values ?? []).enumerated() {
            let subject = "\(before.table).\(value.column)"
            let left = after.map { $0.values(of: value.column) ?? renamedColumn(index, before, $0)?.count }
            switch left {
            case .some(nil) where value.count == 0:
                findings.append(
                    finding(
                        .removesSchema, column: value.column, 0, "drops the column \(subject), which holds no value"))
            case .some(nil):
                findings.append(
                    finding(
                        .losesData, column: value.column, value.count,
                        "drops the column \(subject) with \(Self.values(value.count))"))
            case .some(.some(let left)) where gone <= 0 && left < value.count:
                findings.append(
                    finding(
                        .losesData, column: value.column, value.count - left,
                        "sets \(Self.values(value.count - left)) of \(subject) to NULL"))
            default:
                let lost = value.count - ((left ?? nil) ?? 0)
                guard gone > 0, lost > 0, try !isCopied(value.column, lost, sources) else { continue }
                findings.append(
                    finding(
                        .losesData, column: value.column, lost,
                        "removes \(Self.values(lost)) of \(subject), and no other table was given them"))
            }
        }
        return findings
    }

    /// Takes rows that are gone from what was copied before.
    private func takeCopies(of name: Name, _ rows: Int) -> (copied: Int, sources: [Copy]) {
        var left = rows
        var used: [Copy] = []
        for index in (copies[name] ?? []).indices where left > 0 {
            let taken = min(left, copies[name]?[index].rows ?? 0)
            guard taken > 0, let copy = copies[name]?[index] else { continue }
            used.append(copy)
            copies[name]?[index].rows -= taken
            left -= taken
        }
        return (rows - left, used)
    }

    /// Whether a column was read when its rows were copied, or the copy has as many values under its name.
    private func isCopied(_ column: String, _ count: Int, _ copies: [Copy]) throws -> Bool {
        if copies.contains(where: { $0.columns.contains(SQLName(column)) }) { return true }
        return try copies.contains { copy in
            try TableCount(copy.target, connection, countsValues: true)?.values(of: column) ?? 0 >= count
        }
    }

    /// The column that took another's place: of the same number of columns one has another name.
    private func renamedColumn(_ index: Int, _ before: TableCount, _ after: TableCount) -> (column: String, count: Int)?
    {
        guard touched.altered.contains(where: { $0.table == SQLName(before.table) }), let old = before.values,
            let new = after.values, old.count == new.count, before.values(of: new[index].column) == nil
        else { return nil }
        return new[index]
    }

    // MARK: Words

    private static func rows(_ count: Int) -> String { "\(count) row\(count == 1 ? "" : "s")" }
    private static func values(_ count: Int) -> String { "\(count) value\(count == 1 ? "" : "s")" }

    private static func effect(
        _ first: TableCount?, _ before: TableCount?, _ after: TableCount?, isRenamed: Bool
    ) -> Plan.TableEffect? {
        guard let table = (first ?? after)?.table else { return nil }
        var effect = Plan.TableEffect(table: table, rowsBefore: first?.rows, rowsAfter: after?.rows)
        if isRenamed { effect.renamedTo = after?.table }
        effect.removedIndexes = (before?.indexes ?? []).filter { after?.indexes.contains($0) != true }
        effect.addedIndexes = (after?.indexes ?? []).filter { before?.indexes.contains($0) != true }
        guard let before, let old = before.values, let after, let new = after.values else { return effect }
        effect.columns = old.compactMap { value in
            let left = after.values(of: value.column)
            let nulls = (before.rows - value.count, left.map { after.rows - $0 })
            return nulls.0 == nulls.1
                ? nil : .init(name: value.column, nullsBefore: nulls.0, nullsAfter: nulls.1)
        }
        effect.columns += new.filter { before.values(of: $0.column) == nil }.map {
            .init(name: $0.column, nullsBefore: nil, nullsAfter: after.rows - $0.count)
        }
        return effect
    }
}
