internal import CipherCatalog
internal import CipherSQLText

extension TableShape {
    /// A part of a table's definition that a change of the table would remove.
    struct Loss {
        /// The part, such as `UNIQUE (uid)`.
        let text: String
        /// The columns that the part concerns; empty for an option of the table.
        var columns: [SQLName] = []
        /// The column or table constraint that contains the part; `nil` for an option of the table.
        var item: TableText.Item?
        /// Whether the part belongs to the primary key.
        var isOfKey = false
        /// The property of the table to which the part belongs.
        var property = WantedSchema.Property.constraints
    }

    /// Returns what a change of this table to another one would remove.
    ///
    /// A part is not lost if the other table replaces it: a key with a key of the same columns, a CHECK with a new
    /// CHECK of the same columns, and a foreign key with a foreign key of the same columns.
    func losses(in target: TableShape) -> [Loss] {
        var losses = lostKeys(in: target) + lostForeignKeys(in: target) + lostChecks(in: target)
        losses += lostClauses(in: target).filter { clause in !losses.contains { $0.item == clause.item } }
        losses += lostExpressions(in: target)
        if facts.isAutoincrement, !target.facts.isAutoincrement, let column = rowIDColumn.map({ SQLName($0.name) }) {
            losses.append(
                Loss(text: "AUTOINCREMENT", columns: [column], item: item("PRIMARY", of: [column]), isOfKey: true))
        }
        if facts.isStrict, !target.facts.isStrict { losses.append(Loss(text: "STRICT", property: .strictness)) }
        return losses.sorted { $0.text < $1.text }
    }

    // MARK: Keys

    private func lostKeys(in target: TableShape) -> [Loss] {
        var losses = facts.keys.filter { !target.replaces($0) }.map { key in
            let columns = key.parts.map(\.column)
            let word = key.origin == .primaryKey ? "PRIMARY" : "UNIQUE"
            return Loss(
                text: "\(word == "PRIMARY" ? "PRIMARY KEY" : word) (\(list(columns)))", columns: columns,
                item: item(word, of: columns), isOfKey: key.origin == .primaryKey)
        }
        if let column = rowIDColumn.map({ SQLName($0.name) }), !target.numbers(column) {
            losses.append(
                Loss(
                    text: "INTEGER PRIMARY KEY (\(list([column])))", columns: [column],
                    item: item("PRIMARY", of: [column]), isOfKey: true))
        }
        return losses
    }

    /// Returns whether values that are unique by this table's keys are also unique by another key, which an upsert can
    /// still name.
    private func replaces(_ key: Key) -> Bool {
        let isRowID = rowIDColumn.map { [SQLName($0.name)] == key.parts.map(\.column) } ?? false
        return isRowID
            || facts.keys.contains { mine in
                (key.origin != .primaryKey || mine.origin == .primaryKey) && mine.parts.count == key.parts.count
                    && key.parts.allSatisfy { part in
                        // Values that are equal byte by byte are equal by every collation.
                        mine.parts.contains {
                            $0.column == part.column
                                && ($0.collation == part.collation || part.collation == SQLName("BINARY"))
                        }
                    }
            }
    }

    /// Returns whether a column is the key by which rows are numbered, or the key of a table without row numbers.
    private func numbers(_ column: SQLName) -> Bool {
        if let rowIDColumn { return SQLName(rowIDColumn.name) == column }
        return facts.isWithoutRowID && columns.primaryKey.map { SQLName($0.name) } == [column]
    }

    // MARK: Foreign keys

    private func lostForeignKeys(in target: TableShape) -> [Loss] {
        facts.foreignKeys.flatMap { key -> [Loss] in
            let subject = "FOREIGN KEY (\(list(key.children)))"
            let others = target.facts.foreignKeys.filter { Set($0.children) == Set(key.children) }
            func loss(_ text: String) -> Loss {
                Loss(text: text, columns: key.children, item: item("REFERENCES", of: key.children))
            }
            guard !others.isEmpty else { return [loss("\(subject) REFERENCES \(key.parent.text)")] }
            let same = others.filter { $0.parent == key.parent }
            return zip(["UPDATE", "DELETE"], key.rules.indices).compactMap { event, index in
                let isLost = key.rules[index] != Self.noAction && same.allSatisfy { $0.rules[index] == Self.noAction }
                return isLost && !same.isEmpty ? loss("ON \(event) \(key.rules[index]) of \(subject)") : nil
            }
        }
    }

    private static let noAction = "NO ACTION"

    // MARK: Other constraints

    private func lostChecks(in target: TableShape) -> [Loss] {
        let new = target.facts.checks.subtracting(facts.checks).map { Set(columns(in: $0)) }
        return text.items.flatMap { item in
            item.expressions(after: "CHECK").compactMap { check in
                let words = SQLTokens.normalized(check)
                let columns = columns(in: words)
                guard !target.facts.checks.contains(words), !new.contains(Set(columns)) else { return nil }
                return Loss(text: "CHECK (\(check))", columns: columns, item: item)
            }
        }
    }

    /// Returns the ON CONFLICT and DEFERRABLE clauses that are removed from constraints that stay.
    private func lostClauses(in target: TableShape) -> [Loss] {
        let conflicts = Set(target.facts.conflicts.map { $0.dropLast() })
        return text.items.flatMap { item -> [Loss] in
            var own = Facts()
            own.add(item)
            let lost =
                own.conflicts.filter { !conflicts.contains($0.dropLast()) }.compactMap { conflict in
                    conflict.last.map { "ON CONFLICT \(String(decoding: $0.bytes, as: UTF8.self).uppercased())" }
                }
                + own.deferrals.subtracting(target.facts.deferrals).map { _ in "DEFERRABLE INITIALLY DEFERRED" }
            let columns = item.column.map { [SQLName($0)] } ?? item.listedColumns
            return lost.map { Loss(text: "\($0) of \(list(columns))", columns: columns, item: item) }
        }
    }

    /// Returns the expressions of generated columns whose values would be stored, and not computed again.
    private func lostExpressions(in target: TableShape) -> [Loss] {
        columns.filter { $0.generation != nil }.compactMap { column in
            let name = SQLName(column.name)
            guard let new = target.column(name), new.generation == nil, let item = text.column(name) else { return nil }
            let expression = item.expressions(after: "AS").first ?? ""
            return Loss(text: "the expression (\(expression)) of \(column.name)", columns: [name], item: item)
        }
    }

    // MARK: Text

    private func columns(in words: [SQLWord]) -> [SQLName] {
        let words = Set(words)
        return columns.map { SQLName($0.name) }.filter { words.contains(SQLWord(bytes: $0.folded)) }
    }

    /// Returns the column or table constraint that declares a constraint of some columns.
    private func item(_ keyword: String, of columns: [SQLName]) -> TableText.Item? {
        text.items.first { item in
            item.hasKeyword(keyword)
                && (item.column.map { [SQLName($0)] == columns } ?? (item.listedColumns == columns))
        }
    }

    private func list(_ columns: [SQLName]) -> String {
        columns.map { column($0)?.name ?? $0.text }.joined(separator: ", ")
    }
}
