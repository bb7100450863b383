internal import CipherSQLText

/// Turns the counts into effects for people to read and losses for the policy to judge.
extension StepEffectCounter {
    func outcome(of operation: Plan.Operation) throws -> Outcome {
        var after: [TableRowCounts.Name: TableRowCounts] = [:]
        for name in effectState.first.keys {
            after[name] = try TableRowCounts(name, connection, countsValues: effectState.base[name] != nil)
        }
        let gone = effectState.first.keys.filter { after[$0] == nil }
        for name in gone {
            // Rows that were copied from a dropped table to another table are now in the other table.
            let places = effectState.copies[name] ?? []
            effectState.redirect(name) { source in places.first { $0.target != source }?.target }
        }
        var outcome = Outcome(effects: [], losses: effectState.losses)
        // The losses of users' tables come first, because they decide which users' rows the other tables hold.
        let names = effectState.first.keys.sorted {
            ($0.rank(effectState.users), $0.table) < ($1.rank(effectState.users), $1.table)
        }
        for name in names {
            guard let before = effectState.first[name] else { continue }
            let effect = Self.effect(before, effectState.base[name] ?? before, after[name])
            if let effect, effect.isChange { outcome.effects.append(effect) }
            if let base = effectState.base[name] {
                outcome.losses += try losses(of: name, base, after[name], operation)
            }
        }
        outcome.effects.sort { $0.table < $1.table }
        for name in gone { effectState.forget(name) }
        return outcome
    }

    /// Returns the rows that are left at the end in temporary tables, which disappear with the connection.
    func leftovers() throws -> [(step: String?, loss: Plan.Finding)] {
        isCounting = true
        defer { isCounting = false }
        return try effectState.held.filter { $0.key.schema == SQLName("temp") }.sorted { $0.key.table < $1.key.table }
            .compactMap { name, held in
                guard let count = try TableRowCounts(name, connection, countsValues: false) else { return nil }
                let left = min(held.rows, count.rows) - (effectState.copies[name] ?? []).map(\.rows).reduce(0, +)
                guard left > 0 else { return nil }
                let loss = Plan.Finding(
                    .losesData, table: held.table, count: left,
                    message: "\(held.operation.place) leaves \(Self.rows(left)) of \(held.table) only in the "
                        + "temporary table \(count.table), which is deleted when the connection closes")
                return (held.operation.step, loss)
            }
    }

    func losses(
        of name: TableRowCounts.Name, _ before: TableRowCounts, _ after: TableRowCounts?, _ operation: Plan.Operation
    ) throws -> [Plan.Finding] {
        let place = operation.place
        func finding(
            _ severity: Plan.Finding.Severity, column: String? = nil, _ count: Int, _ message: String
        ) -> Plan.Finding {
            Plan.Finding(
                severity, table: before.table, column: column, count: count, message: "\(place) \(message)")
        }
        let isOfUsers = effectState.users.contains(name)
        let held = effectState.held[name]?.rows ?? 0
        guard isOfUsers || held > 0 else { return [] }
        let left = after?.rows ?? 0
        let worst = min(-(effectState.balance[name]?.least ?? 0), before.rows)
        let gone = isOfUsers ? max(before.rows - left, worst) : max(held - left, 0)
        if held > 0 { effectState.held[name]?.rows = min(held, left) }
        var lost: [SQLName: Int] = [:]
        let values = (before.values ?? []).enumerated().map { index, value in
            let now = after.flatMap { self.values(index, before, $0, of: name) }
            lost[SQLName(value.column)] = max(value.count - (now ?? 0), 0)
            return (value: value, isDropped: after != nil && now == nil)
        }
        let missing = try take(max(gone, 0), lost, of: name, before.table, operation)
        var findings: [Plan.Finding] = []
        if after == nil, before.rows == 0 {
            findings.append(finding(.removesSchema, 0, "drops the table \(before.table), which contains no rows"))
        } else if missing.rows > 0 {
            let copied = gone - missing.rows
            let loss =
                after == nil
                ? "drops the table \(before.table), and with it \(Self.rows(gone))"
                : "deletes \(gone) of \(Self.rows(before.rows)) from \(before.table)"
            let rest =
                copied > 0 ? ", of which only \(copied) \(copied == 1 ? "was" : "were") copied to another table" : ""
            findings.append(finding(.losesData, missing.rows, loss + rest))
            // Values that disappear with rows are not reported separately.
            return findings
        }
        for (value, isDropped) in values {
            let subject = "\(before.table).\(value.column)"
            let count = missing.values[SQLName(value.column)] ?? 0
            func add(_ message: String, _ severity: Plan.Finding.Severity = .losesData) {
                findings.append(finding(severity, column: value.column, count, message))
            }
            if isDropped, value.count == 0 {
                add("drops the column \(subject), which contains no values", .removesSchema)
            } else if count == 0 {
                continue
            } else if isDropped {
                add("drops the column \(subject), and with it \(Self.values(count))")
            } else if gone <= 0 {
                add("sets \(Self.values(count)) of \(subject) to NULL")
            } else {
                add(
                    "removes \(Self.values(count)) from \(subject), but \(count == 1 ? "it was" : "they were") not "
                        + "copied to another table")
            }
        }
        return findings
    }

    /// Returns how many values a column of a table now contains, even if it was renamed; `nil` if it was dropped.
    private func values(_ index: Int, _ before: TableRowCounts, _ after: TableRowCounts, of name: TableRowCounts.Name)
        -> Int?
    {
        let dropped = effectState.dropped[name] ?? []
        guard let old = before.values, !dropped.contains(index) else { return nil }
        if let count = after.values(of: old[index].column) { return count }
        if let new = effectState.renamed[name]?[SQLName(old[index].column)] { return after.values(of: new.text) }
        // Columns are added at the end.
        let place = index - dropped.filter { $0 < index }.count
        guard effectState.altered.contains(name), before.root == after.root, let new = after.values,
            new.count >= old.count - dropped.count, before.values(of: new[place].column) == nil
        else { return nil }
        return new[place].count
    }

    /// Deducts removed rows and values from those that were copied before.
    ///
    /// - Returns: The numbers of rows and values that were not copied.
    private func take(
        _ rows: Int, _ values: [SQLName: Int], of name: TableRowCounts.Name, _ table: String,
        _ operation: Plan.Operation
    ) throws -> (rows: Int, values: [SQLName: Int]) {
        var (rows, values) = (rows, values)
        for index in (effectState.copies[name] ?? []).indices {
            guard let copy = effectState.copies[name]?[index],
                let wanted = ([rows] + copy.columns.compactMap { values[$0] }).max(), wanted > 0,
                let target = try TableRowCounts(copy.target, connection, countsValues: true)
            else { continue }
            let taken = min(copy.rows, target.rows, wanted)
            effectState.copies[name]?[index].rows -= taken
            if !effectState.users.contains(copy.target) {
                effectState.held[copy.target, default: .init(rows: 0, operation: operation, table: table)].rows += taken
            }
            rows = max(rows - taken, 0)
            for (column, count) in values {
                // A column that was not read may still exist, under its name.
                let isThere = copy.columns.contains(column) || target.values(of: column.text) ?? 0 >= count
                if isThere { values[column] = max(count - taken, 0) }
            }
        }
        return (rows, values)
    }

    // MARK: Text

    private static func rows(_ count: Int) -> String { "\(count) row\(count == 1 ? "" : "s")" }
    private static func values(_ count: Int) -> String { "\(count) value\(count == 1 ? "" : "s")" }

    private static func effect(
        _ first: TableRowCounts?, _ before: TableRowCounts?, _ after: TableRowCounts?
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
