internal import CipherSQLite

/// Counts what the app's own SQL and Swift does to the rows of a database.
///
/// Before a statement runs, SQLite has told which tables it touches, and they are counted then; what became of them is
/// counted when the operation has ended. Rows are counted and not compared: values that are written over do not show. Nor
/// does SQLite tell what a statement that copies does with a column that it reads, or how often a join repeats a row.
final class StepCensus {
    private typealias Name = TableCount.Name

    private let connection: Connection
    /// Whether tables are counted too that rows are only added to.
    private let countsAdditions: Bool
    private var ledger: Ledger
    /// What was known at each savepoint that is open.
    private var savepoints: [(name: SQLName, ledger: Ledger)] = []

    /// What is known of the tables, which a savepoint that is rolled back takes back.
    private struct Ledger {
        /// The tables that were there before the migration.
        var users: Set<Name>
        /// Those that rows of theirs were copied to, too.
        var known: Set<Name>
        /// Where rows of a table were copied to.
        var copies: [Name: [Copy]] = [:]
        /// How many rows of users are in a table that the migration made, and no longer where they were.
        var held: [Name: Held] = [:]
        // Of the operation's statements.
        /// Each table as it was before the first of them; `nil` for one that was not there.
        var first: [Name: TableCount?] = [:]
        /// As it was before the first of them that could take something away.
        var base: [Name: TableCount] = [:]
        var altered: Set<Name> = []
        /// How many rows a table has gained, or lost.
        var balance: [Name: Balance] = [:]
        /// The columns of `base` that are dropped, by their place.
        var dropped: [Name: Set<Int>] = [:]
        /// What columns are called since, by their names before.
        var renamed: [Name: [SQLName: SQLName]] = [:]
        /// What was lost with tables whose names others have since.
        var losses: [Plan.Finding] = []
    }

    /// What statements took from one table and wrote to another.
    private struct Copy {
        var target: Name
        /// The columns that were read.
        let columns: Set<SQLName>
        /// How many rows of them are not gone from where they were.
        var rows: Int
    }

    private struct Held {
        var rows: Int
        /// What took the rows away from where they were.
        let operation: Plan.Operation
        /// Where they were.
        let table: String
    }

    /// A statement that reads tables and writes another.
    private struct Copying {
        let target: Name
        /// The tables that are read, with the columns.
        let sources: [Name: Set<SQLName>]
        /// Whether it makes the table too.
        let isNew: Bool
        /// How many rows the table had, where it may lose some of them.
        var rowsBefore: Int?
    }

    /// A statement that may give a table or a column another name.
    private struct Renaming {
        let name: Name
        let root: Int
        let columns: [SchemaName]
        /// The tables that are there already.
        let tables: [String]
    }

    /// How many rows a table has more than at first.
    private struct Balance {
        var now = 0
        /// At the worst moment: what is added afterwards is something else, unless it is a copy of what was there.
        var least = 0

        mutating func settle() { least = min(least, now) }
    }

    /// A statement that adds rows to a table or takes them away.
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
    private var isCounting = false

    /// - Parameter countsAdditions: Whether tables are counted too that rows are only added to.
    init(_ state: DatabaseState, countsAdditions: Bool) {
        connection = state.connection
        self.countsAdditions = countsAdditions
        let users = Set(state.tables.map { Name($0.name) })
        ledger = Ledger(users: users, known: users)
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
        self.operation = operation
        (ledger.first, ledger.base, ledger.altered) = ([:], [:], [])
        (ledger.dropped, ledger.losses, ledger.balance) = ([:], [], [:])
        ledger.renamed = [:]
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
        try settle()
        let text = String(decoding: sql, as: UTF8.self)
        let mayReplace = text.isLike("%replace%")
        copying = try copying(actions, text)
        if let target = copying?.target, copying?.isNew == false,
            try mayReplace || text.isLike("%conflict%") || TableCount.replacesRows(target, connection)
        {
            copying?.rowsBefore = try TableCount(target, connection, countsValues: false)?.rows
        }
        for action in actions {
            if action.kind == .savepoint { noteSavepoint(action) }
            let name = Name(action.subject, in: action.schema ?? "main")
            guard !name.isOfSystem, action.subject != "" else { continue }
            switch action.kind {
            case .createTable:
                if ledger.first[name] == nil { ledger.first[name] = .some(nil) }
            case .insert: try countBefore(name, mayLose: mayReplace || action.cause != nil)
            case .alterTable:
                ledger.altered.insert(name)
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
        if ledger.base[name] != nil || (!mayLose && ledger.first[name] != nil) { return }
        let mayLose = try mayLose || TableCount.replacesRows(name, connection)
        guard mayLose || countsAdditions else { return }
        let count = try TableCount(name, connection, countsValues: mayLose)
        if ledger.first[name] == nil { ledger.first[name] = .some(count) }
        if mayLose, let count { ledger.base[name] = count }
    }

    private func noteSavepoint(_ action: StatementAction) {
        let name = SQLName(action.detail ?? "")
        guard action.subject != "BEGIN" else {
            savepoints.append((name, ledger))
            return
        }
        guard let index = savepoints.lastIndex(where: { $0.name == name }) else { return }
        if action.subject == "ROLLBACK" {
            ledger = savepoints[index].ledger
            savepoints.removeSubrange((index + 1)...)
        } else {
            savepoints.removeSubrange(index...)
        }
    }

    // MARK: Alterations

    private func noteAlteration(of name: Name, dropping column: String?) throws {
        guard let column else {
            guard let (_, root) = try TableCount.find(name, connection) else { return }
            renaming = Renaming(
                name: name, root: root, columns: try TableCount.columns(of: name.table.text, in: name, connection),
                tables: try TableCount.tables(at: root, in: name, connection))
            return
        }
        guard let values = ledger.base[name]?.values,
            let place = try TableCount(name, connection, countsValues: true)?.values?
                .firstIndex(where: { SQLName($0.column) == SQLName(column) })
        else { return }
        let left = values.indices.filter { ledger.dropped[name]?.contains($0) != true }
        // One that the operation has added holds nothing of its own.
        if place < left.count { ledger.dropped[name, default: []].insert(left[place]) }
    }

    private func noteRename(_ renaming: Renaming) throws {
        let old = renaming.name
        let columns = try TableCount.columns(of: old.table.text, in: old, connection)
        let changed = zip(renaming.columns, columns).filter { $0 != $1 }
        if columns.count == renaming.columns.count, changed.count == 1, let (before, after) = changed.first {
            let first = ledger.renamed[old]?.first { $0.value == SQLName(of: before) }?.key ?? SQLName(of: before)
            ledger.renamed[old, default: [:]][first] = SQLName(of: after)
        }
        guard try TableCount.find(old, connection) == nil,
            let new = try TableCount.tables(at: renaming.root, in: old, connection)
                .first(where: { !renaming.tables.contains($0) })
        else { return }
        try rename(old, Name(new, in: old.schema.text))
    }

    private func rename(_ old: Name, _ new: Name) throws {
        func move<Value>(_ values: inout [Name: Value]) {
            if let value = values.removeValue(forKey: old) { values[new] = value }
        }
        if case .some(.none) = ledger.first[old], ledger.first[new] != nil {
            // A table that the operation has made takes the place of one that it has dropped.
            ledger.first.removeValue(forKey: old)
            ledger.base.removeValue(forKey: old)
        } else if let base = ledger.base[new], let operation {
            ledger.losses += try losses(of: new, base, nil, operation)
            forget(new)
        }
        move(&ledger.first)
        move(&ledger.base)
        move(&ledger.dropped)
        move(&ledger.balance)
        move(&ledger.renamed)
        move(&ledger.held)
        ledger.copies[new, default: []] += ledger.copies.removeValue(forKey: old) ?? []
        if ledger.altered.remove(old) != nil { ledger.altered.insert(new) }
        if ledger.users.remove(old) != nil { ledger.users.insert(new) }
        if ledger.known.remove(old) != nil { ledger.known.insert(new) }
        redirect(old) { _ in new }
    }

    /// Gives the copies in a table another place, or none.
    private func redirect(_ old: Name, to place: (_ source: Name) -> Name?) {
        for source in ledger.copies.keys {
            ledger.copies[source] = ledger.copies[source]?.compactMap { copy in
                guard copy.target == old else { return copy }
                guard let target = place(source), target != source else { return nil }
                var copy = copy
                copy.target = target
                return copy
            }
        }
    }

    // MARK: Copies

    /// What a statement copies from tables to another; what a trigger reads is copied by nobody.
    private func copying(_ actions: [StatementAction], _ sql: String) throws -> Copying? {
        guard actions.contains(where: { $0.cause == nil && ($0.kind == .insert || $0.kind == .createTable) })
        else { return nil }
        // A view and a named query are causes too, and part of the statement.
        let causes = Set(actions.compactMap(\.cause))
        let hasTriggers = try causes.contains { try TableCount.isTrigger($0, connection) }
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

    /// The table that a statement copies whole by `SELECT * FROM`, without a word of SQLite's about its columns.
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
            guard try TableCount.find(name, connection) != nil else { continue }
            let columns = try TableCount.columns(of: table, in: name, connection)
            return (name, Set(columns.map { SQLName(String(decoding: $0.bytes, as: UTF8.self)) }))
        }
        return nil
    }

    /// Notes what the latest statement did.
    private func settle() throws {
        if let writing {
            self.writing = nil
            ledger.balance[writing.name, default: Balance()].now += writing.sign * connection.changes
            ledger.balance[writing.name]?.settle()
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
        // A table that is made of a query's rows is not in the count of changes, and a row that takes another's place is.
        if copying.isNew || copying.rowsBefore != nil {
            let after = try TableCount(copying.target, connection, countsValues: false)?.rows ?? 0
            rows = after - (copying.rowsBefore ?? 0)
        }
        let isBack = copying.sources.keys.contains { source in
            ledger.copies[copying.target]?.contains { $0.target == source } == true
        }
        if isBack, let least = ledger.balance[copying.target]?.least {
            ledger.balance[copying.target]?.least = min(least + rows, 0)
        }
        for (source, columns) in copying.sources where rows > 0 && ledger.known.contains(source) {
            ledger.copies[source, default: []].append(Copy(target: copying.target, columns: columns, rows: rows))
            ledger.known.insert(copying.target)
        }
    }

    // MARK: After

    private func outcome(of operation: Plan.Operation) throws -> Outcome {
        var after: [Name: TableCount] = [:]
        for name in ledger.first.keys {
            after[name] = try TableCount(name, connection, countsValues: ledger.base[name] != nil)
        }
        let gone = ledger.first.keys.filter { after[$0] == nil }
        for name in gone {
            // What was copied on from there is where it was copied to.
            let places = ledger.copies[name] ?? []
            redirect(name) { source in places.first { $0.target != source }?.target }
        }
        var outcome = Outcome(effects: [], losses: ledger.losses)
        // What users lose decides what the other tables hold for them.
        let names = ledger.first.keys.sorted { ($0.rank(ledger.users), $0.table) < ($1.rank(ledger.users), $1.table) }
        for name in names {
            guard let before = ledger.first[name] else { continue }
            let effect = Self.effect(before, ledger.base[name] ?? before, after[name])
            if let effect, effect.isChange { outcome.effects.append(effect) }
            if let base = ledger.base[name] { outcome.losses += try losses(of: name, base, after[name], operation) }
        }
        outcome.effects.sort { $0.table < $1.table }
        for name in gone { forget(name) }
        return outcome
    }

    private func forget(_ name: Name) {
        ledger.users.remove(name)
        ledger.known.remove(name)
        ledger.copies[name] = nil
        ledger.held[name] = nil
    }

    /// What is left in temporary tables, which end with the connection, when all is done.
    func leftovers() throws -> [(step: String?, loss: Plan.Finding)] {
        isCounting = true
        defer { isCounting = false }
        return try ledger.held.filter { $0.key.schema == SQLName("temp") }.sorted { $0.key.table < $1.key.table }
            .compactMap { name, held in
                guard let count = try TableCount(name, connection, countsValues: false) else { return nil }
                let left = min(held.rows, count.rows) - (ledger.copies[name] ?? []).map(\.rows).reduce(0, +)
                guard left > 0 else { return nil }
                let loss = Plan.Finding(
                    .losesData, table: held.table, count: left,
                    message: "\(held.operation.subject) leaves \(Self.rows(left)) of \(held.table) in the temporary "
                        + "table \(count.table) alone, which ends with the connection")
                return (held.operation.step, loss)
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
        let isOfUsers = ledger.users.contains(name)
        let held = ledger.held[name]?.rows ?? 0
        guard isOfUsers || held > 0 else { return [] }
        let left = after?.rows ?? 0
        let worst = min(-(ledger.balance[name]?.least ?? 0), before.rows)
        let gone = isOfUsers ? max(before.rows - left, worst) : max(held - left, 0)
        if held > 0 { ledger.held[name]?.rows = min(held, left) }
        var lost: [SQLName: Int] = [:]
        let values = (before.values ?? []).enumerated().map { index, value in
            let now = after.flatMap { self.values(index, before, $0, of: name) }
            lost[SQLName(value.column)] = max(value.count - (now ?? 0), 0)
            return (value: value, isDropped: after != nil && now == nil)
        }
        let missing = try take(max(gone, 0), lost, of: name, before.table, operation)
        var findings: [Plan.Finding] = []
        if after == nil, before.rows == 0 {
            findings.append(finding(.removesSchema, 0, "drops the table \(before.table), which holds no row"))
        } else if missing.rows > 0 {
            let copied = gone - missing.rows
            let rows = Self.rows(missing.rows)
            let isWhole = copied == 0 && after == nil
            findings.append(
                finding(
                    .losesData, missing.rows,
                    isWhole
                        ? "drops the table \(before.table) with \(rows)"
                        : "\(after == nil ? "drops the table" : "deletes from") \(before.table) \(rows) of "
                            + "\(before.rows)\(copied > 0 ? ", and \(copied) of them were copied before" : "")"))
            // What goes with rows that are told of needs no word of its own.
            return findings
        }
        for (value, isDropped) in values {
            let subject = "\(before.table).\(value.column)"
            let count = missing.values[SQLName(value.column)] ?? 0
            func add(_ message: String, _ severity: Plan.Finding.Severity = .losesData) {
                findings.append(finding(severity, column: value.column, count, message))
            }
            if isDropped, value.count == 0 {
                add("drops the column \(subject), which holds no value", .removesSchema)
            } else if count == 0 {
                continue
            } else if isDropped {
                add("drops the column \(subject) with \(Self.values(count))")
            } else if gone <= 0 {
                add("sets \(Self.values(count)) of \(subject) to NULL")
            } else {
                add("removes \(Self.values(count)) of \(subject), and no other table was given them")
            }
        }
        return findings
    }

    /// How many values a column of a table holds now, which may have another name; `nil` where it is dropped.
    private func values(_ index: Int, _ before: TableCount, _ after: TableCount, of name: Name) -> Int? {
        let dropped = ledger.dropped[name] ?? []
        guard let old = before.values, !dropped.contains(index) else { return nil }
        if let count = after.values(of: old[index].column) { return count }
        if let new = ledger.renamed[name]?[SQLName(old[index].column)] { return after.values(of: new.text) }
        // Columns are added at the end.
        let place = index - dropped.filter { $0 < index }.count
        guard ledger.altered.contains(name), before.root == after.root, let new = after.values,
            new.count >= old.count - dropped.count, before.values(of: new[place].column) == nil
        else { return nil }
        return new[place].count
    }

    /// Takes rows and values that are gone from what was copied before.
    ///
    /// - Returns: How many of them were not.
    private func take(
        _ rows: Int, _ values: [SQLName: Int], of name: Name, _ table: String, _ operation: Plan.Operation
    ) throws -> (rows: Int, values: [SQLName: Int]) {
        var (rows, values) = (rows, values)
        for index in (ledger.copies[name] ?? []).indices {
            guard let copy = ledger.copies[name]?[index],
                let wanted = ([rows] + copy.columns.compactMap { values[$0] }).max(), wanted > 0,
                let target = try TableCount(copy.target, connection, countsValues: true)
            else { continue }
            let taken = min(copy.rows, target.rows, wanted)
            ledger.copies[name]?[index].rows -= taken
            if !ledger.users.contains(copy.target) {
                ledger.held[copy.target, default: Held(rows: 0, operation: operation, table: table)].rows += taken
            }
            rows = max(rows - taken, 0)
            for (column, count) in values {
                // What was not read may be there all the same, under its name.
                let isThere = copy.columns.contains(column) || target.values(of: column.text) ?? 0 >= count
                if isThere { values[column] = max(count - taken, 0) }
            }
        }
        return (rows, values)
    }

    // MARK: Words

    private static func rows(_ count: Int) -> String { "\(count) row\(count == 1 ? "" : "s")" }
    private static func values(_ count: Int) -> String { "\(count) value\(count == 1 ? "" : "s")" }

    private static func effect(
        _ first: TableCount?, _ before: TableCount?, _ after: TableCount?
    ) -> Plan.TableEffect? {
        guard let table = (first ?? after)?.table else { return nil }
        var effect = Plan.TableEffect(table: table, rowsBefore: first?.rows, rowsAfter: after?.rows)
        if let new = after?.table, SQLName(new) != SQLName(table) { effect.renamedTo = new }
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
