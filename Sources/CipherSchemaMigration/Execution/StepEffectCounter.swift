internal import CipherSQLText
internal import CipherSQLite

/// Counts what the app's own SQL and Swift code does to the rows of a database.
///
/// Before a statement runs, SQLite reports which tables it accesses, and these tables are counted; they are counted
/// again when the operation has ended. Rows are counted, not compared, so overwritten values are not noticed. SQLite
/// reports neither what a copying statement does with a column that it reads, nor how often a join repeats a row.
final class StepEffectCounter {
    private typealias Name = TableRowCounts.Name

    let connection: Connection
    /// Whether tables to which rows are only added are counted as well.
    private let countsAdditions: Bool
    var effectState: StepEffectState
    /// The state at each open savepoint.
    private var savepoints: [(name: SQLName, effectState: StepEffectState)] = []

    /// A statement that reads tables and writes another table.
    private struct Copying {
        let target: Name
        /// The tables that are read, with the columns that are read.
        let sources: [Name: Set<SQLName>]
        /// Whether the statement also creates the table that it writes.
        let isNew: Bool
        /// The number of rows that the written table had, if it may lose some of them.
        var rowsBefore: Int?
    }

    /// A statement that may rename a table or a column.
    private struct Renaming {
        let name: Name
        let root: Int
        let columns: [SchemaName]
        /// The tables that already exist.
        let tables: [String]
    }

    /// A statement that adds rows to a table or removes rows from it.
    private struct Writing {
        let name: Name
        let sign: Int
    }

    /// The latest statement, which has run when the next one is compiled.
    private var copying: Copying?
    private var renaming: Renaming?
    private var writing: Writing?
    private var operation: Plan.Operation?
    private var actions: [StatementAction] = []
    var isCounting = false

    /// Creates a counter for a database in this state.
    ///
    /// - Parameter countsAdditions: Whether tables to which rows are only added are counted as well.
    init(_ state: DatabaseState, countsAdditions: Bool) {
        connection = state.connection
        self.countsAdditions = countsAdditions
        effectState = StepEffectState(state)
    }

    /// The effects of an operation.
    struct Outcome {
        var effects: [Plan.TableEffect]
        /// The users' rows and values that the operation lost.
        var losses: [Plan.Finding]
    }

    /// Runs an operation with `run`, which reports the operation's statements to two callbacks.
    func observing(
        _ operation: Plan.Operation,
        _ run: (_ note: @escaping (StatementAction) -> Void, _ compiled: @escaping ([UInt8]) throws -> Void) throws ->
            Void
    ) throws -> Outcome {
        self.operation = operation
        effectState.beginOperation()
        savepoints = []
        actions = []
        (copying, renaming, writing) = (nil, nil, nil)
        try run(
            { [self] in if !isCounting, connection.isCompiling { actions.append($0) } },
            { [self] in try countBefore($0) })
        isCounting = true
        defer { isCounting = false }
        return try connection.withinStepsForRows {
            try settle()
            return try outcome(of: operation)
        }
    }

    // MARK: Before a statement

    private func countBefore(_ sql: [UInt8]) throws {
        // The queries of this class are compiled as well.
        guard !isCounting else { return }
        isCounting = true
        defer { isCounting = false }
        let actions = actions
        self.actions = []
        // Without the step limit, counting cyclic pages would never end.
        try connection.withinStepsForRows { try countBefore(actions, sql) }
    }

    private func countBefore(_ actions: [StatementAction], _ sql: [UInt8]) throws {
        try settle()
        // The app's own SQL was a String, and SQLite compiles a part of it.
        let text = String(decoding: sql, as: UTF8.self)
        let mayReplace = text.isLike("%replace%")
        copying = try copying(actions, text)
        if let target = copying?.target, copying?.isNew == false,
            try mayReplace || text.isLike("%conflict%") || TableRowCounts.replacesRows(target, connection)
        {
            copying?.rowsBefore = try TableRowCounts(target, connection, countsValues: false)?.rows
        }
        for action in actions {
            if action.kind == .savepoint { noteSavepoint(action) }
            let name = Name(action.subject, in: action.schema ?? "main")
            guard !name.isOfSystem, action.subject != "" else { continue }
            switch action.kind {
            case .createTable:
                if effectState.first[name] == nil { effectState.first[name] = .some(nil) }
            case .insert: try countBefore(name, mayLose: mayReplace || action.cause != nil)
            case .alterTable:
                effectState.altered.insert(name)
                try countBefore(name, mayLose: true)
                try noteAlteration(of: name, dropping: action.detail)
            case .update, .delete, .dropTable: try countBefore(name, mayLose: true)
            default: continue
            }
        }
        writing = Self.writing(actions)
    }

    private static func writing(_ actions: [StatementAction]) -> Writing? {
        let own = actions.filter { $0.cause == nil && !Name($0.subject, in: $0.schema ?? "main").isOfSystem }
        guard !actions.contains(where: \.isDefinition),
            let action = own.first(where: { $0.kind == .insert || $0.kind == .delete })
        else { return nil }
        return Writing(name: Name(action.subject, in: action.schema ?? "main"), sign: action.kind == .insert ? 1 : -1)
    }

    private func countBefore(_ name: Name, mayLose: Bool) throws {
        if effectState.base[name] != nil || (!mayLose && effectState.first[name] != nil) { return }
        let mayLose = try mayLose || TableRowCounts.replacesRows(name, connection)
        guard mayLose || countsAdditions else { return }
        let count = try TableRowCounts(name, connection, countsValues: mayLose)
        if effectState.first[name] == nil { effectState.first[name] = .some(count) }
        if mayLose, let count { effectState.base[name] = count }
    }

    private func noteSavepoint(_ action: StatementAction) {
        let name = SQLName(action.detail ?? "")
        guard action.subject != "BEGIN" else {
            savepoints.append((name, effectState))
            return
        }
        guard let index = savepoints.lastIndex(where: { $0.name == name }) else { return }
        if action.subject == "ROLLBACK" {
            effectState = savepoints[index].effectState
            savepoints.removeSubrange((index + 1)...)
        } else {
            savepoints.removeSubrange(index...)
        }
    }

    // MARK: Alterations

    private func noteAlteration(of name: Name, dropping column: String?) throws {
        guard let column else {
            guard let (_, root) = try TableRowCounts.find(name, connection) else { return }
            renaming = Renaming(
                name: name, root: root, columns: try TableRowCounts.columns(of: name.table.text, in: name, connection),
                tables: try TableRowCounts.tables(at: root, in: name, connection))
            return
        }
        guard let values = effectState.base[name]?.values,
            let place = try TableRowCounts(name, connection, countsValues: true)?.values?
                .firstIndex(where: { SQLName($0.column) == SQLName(column) })
        else { return }
        let left = values.indices.filter { effectState.dropped[name]?.contains($0) != true }
        // A column that the operation itself added contained no earlier values.
        if place < left.count { effectState.dropped[name, default: []].insert(left[place]) }
    }

    private func noteRename(_ renaming: Renaming) throws {
        let old = renaming.name
        let columns = try TableRowCounts.columns(of: old.table.text, in: old, connection)
        let changed = zip(renaming.columns, columns).filter { $0 != $1 }
        if columns.count == renaming.columns.count, changed.count == 1, let (before, after) = changed.first {
            let first = effectState.renamed[old]?.first { $0.value == SQLName(of: before) }?.key ?? SQLName(of: before)
            effectState.renamed[old, default: [:]][first] = SQLName(of: after)
        }
        guard try TableRowCounts.find(old, connection) == nil,
            let new = try TableRowCounts.tables(at: renaming.root, in: old, connection)
                .first(where: { !renaming.tables.contains($0) })
        else { return }
        try rename(old, Name(new, in: old.schema.text))
    }

    private func rename(_ old: Name, _ new: Name) throws {
        if case .some(.none) = effectState.first[old], effectState.first[new] != nil {
            // A table that the operation created takes the place of one that it dropped.
            effectState.first.removeValue(forKey: old)
            effectState.base.removeValue(forKey: old)
        } else if let base = effectState.base[new], let operation {
            effectState.losses += try losses(of: new, base, nil, operation)
            effectState.forget(new)
        }
        effectState.rename(old, new)
    }

    // MARK: Copies

    /// Returns what a statement copies from tables to another table; the columns that a trigger reads are not included.
    private func copying(_ actions: [StatementAction], _ sql: String) throws -> Copying? {
        guard actions.contains(where: { $0.cause == nil && ($0.kind == .insert || $0.kind == .createTable) })
        else { return nil }
        // The cause can also be a view or a named query, which is part of the statement.
        let causes = Set(actions.compactMap(\.cause))
        let hasTriggers = try causes.contains { try TableRowCounts.isTrigger($0, connection) }
        var target: (name: Name, isNew: Bool)?
        var sources: [Name: Set<SQLName>] = [:]
        for action in actions where action.cause == nil || (action.kind == .read && !hasTriggers) {
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
        if sources.isEmpty, !target.isNew, let (source, columns) = try wholeTable(sql) { sources[source] = columns }
        return sources.isEmpty ? nil : Copying(target: target.name, sources: sources, isNew: target.isNew)
    }

    /// Returns the table that a statement copies whole with `SELECT * FROM`, for which SQLite reports no columns.
    ///
    /// Source: SQLite's insert.c, the transfer optimization, which never looks at the columns.
    private func wholeTable(_ sql: String) throws -> (name: Name, columns: Set<SQLName>)? {
        let words = SQLTokens(sql).tokens.map { (kind: $0.kind, name: SQLName($0.content)) }
        let from = words.indices.dropFirst(3).first { index in
            words[(index - 3)..<index].map(\.name) == ["select", "*", "from"].map { SQLName($0) }
        }
        guard let from else { return nil }
        let isQualified = from + 2 < words.count && words[from + 1].name == SQLName(".")
        let table = words[isQualified ? from + 2 : from].name.text
        for schema in isQualified ? [words[from].name.text] : ["temp", "main"] {
            let name = Name(table, in: schema)
            guard try TableRowCounts.find(name, connection) != nil else { continue }
            let columns = try TableRowCounts.columns(of: table, in: name, connection)
            return (name, Set(columns.map(SQLName.init(of:))))
        }
        return nil
    }

    /// Records what the latest statement did.
    private func settle() throws {
        if let writing {
            self.writing = nil
            effectState.balance[writing.name, default: .init()].now += writing.sign * connection.changes
            effectState.balance[writing.name]?.settle()
        }
        if let copying {
            self.copying = nil
            try noteCopy(copying)
        }
        if let renaming {
            self.renaming = nil
            try noteRename(renaming)
        }
    }

    private func noteCopy(_ copying: Copying) throws {
        var rows = connection.changes
        // The count of changes omits a table that is created from a query's rows, and includes rows that replace
        // other rows.
        if copying.isNew || copying.rowsBefore != nil {
            let after = try TableRowCounts(copying.target, connection, countsValues: false)?.rows ?? 0
            rows = after - (copying.rowsBefore ?? 0)
        }
        // Rows are restored from a copy by a statement that reads a column that contained values.
        let values = (effectState.base[copying.target]?.values ?? []).filter { $0.count > 0 }
        let isBack = copying.sources.contains { source, columns in
            effectState.copies[copying.target]?.contains { $0.target == source } == true
                && (values.isEmpty || values.contains { columns.contains(SQLName($0.column)) })
        }
        if isBack, let least = effectState.balance[copying.target]?.least {
            effectState.balance[copying.target]?.least = min(least + rows, 0)
        }
        for (source, columns) in copying.sources where rows > 0 && effectState.known.contains(source) {
            effectState.copies[source, default: []].append(.init(target: copying.target, columns: columns, rows: rows))
            effectState.known.insert(copying.target)
        }
    }
}
