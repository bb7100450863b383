internal import CipherCatalog
internal import CipherSQLText

extension TableShape {
    /// A part of a table's definition that a change of the table would remove.
    struct Loss {
        /// The part, such as `UNIQUE (uid)`.
        let text: String
        /// The columns that the part concerns; empty for an option of the table.
        var columns: [SQLName] = []
        /// The property of the table to which the part belongs.
        var property = WantedSchema.Property.constraints
        /// Whether the schema states the loss, for example by declaring a column without NOT NULL.
        var isStated = false
    }

    /// Returns what a change of this table to another one would remove.
    ///
    /// A part is not lost if the other table replaces it: a key with a key of the same columns, a CHECK with a new
    /// CHECK of the same columns, and a foreign key with a foreign key of the same columns.
    ///
    /// - Parameter indexes: The keys of the unique indexes that the other table will have.
    func losses(in target: TableShape, indexes: [Key] = []) -> [Loss] {
        var losses = lostKeys(in: target, indexes) + lostForeignKeys(in: target) + lostChecks(in: target)
        losses += lostClauses(in: target)
        losses += lostExpressions(in: target)
        losses += columns.filter(\.isNotNull).compactMap { column in
            let name = SQLName(column.name)
            guard let new = target.column(name), !new.isNotNull, !target.isRowID(new) else { return nil }
            return Loss(text: "NOT NULL (\(column.name))", columns: [name], isStated: true)
        }
        if facts.isAutoincrement, !target.facts.isAutoincrement, let column = rowIDColumn.map({ SQLName($0.name) }) {
            losses.append(Loss(text: "AUTOINCREMENT", columns: [column]))
        }
        if facts.isStrict, !target.facts.isStrict { losses.append(Loss(text: "STRICT", property: .strictness)) }
        return losses.sorted { $0.text < $1.text }
    }

    // MARK: Keys

    private func lostKeys(in target: TableShape, _ indexes: [Key]) -> [Loss] {
        var losses = facts.keys.filter { !target.replaces($0, indexes) }.map { key in
            let columns = key.parts.map(\.column)
            return Loss(
                text: "\(key.origin == .primaryKey ? "PRIMARY KEY" : "UNIQUE") (\(list(columns)))", columns: columns)
        }
        if let column = rowIDColumn.map({ SQLName($0.name) }), !target.numbers(column) {
            losses.append(Loss(text: "INTEGER PRIMARY KEY (\(list([column])))", columns: [column]))
        }
        return losses
    }

    /// Returns whether values that are unique by this table's keys and unique indexes are also unique by another key.
    ///
    /// An upsert can still name a key of the table itself, which therefore needs a key of the same columns.
    func replaces(_ key: Key, _ indexes: [Key]) -> Bool {
        let isRowID = rowIDColumn.map { [SQLName($0.name)] == key.parts.map(\.column) } ?? false
        return isRowID
            || (facts.keys + indexes).contains { mine in
                (mine.parts.count == key.parts.count || key.origin == .statement) && (key.isPartial || !mine.isPartial)
                    && mine.parts.allSatisfy { part in
                        // Values that are equal byte by byte are equal under every collation.
                        key.parts.contains {
                            $0.column == part.column
                                && ($0.collation == part.collation || $0.collation == SQLName("BINARY"))
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
            func ofSameColumns(_ keys: some Sequence<ForeignKey>) -> [ForeignKey] {
                keys.filter { Set($0.children) == Set(key.children) }
            }
            func loss(_ text: String) -> Loss { Loss(text: text, columns: key.children) }
            let others = ofSameColumns(target.facts.foreignKeys)
            let same = others.filter { $0.parent == key.parent }
            // A key may reference another table instead.
            guard !same.isEmpty || others.count >= ofSameColumns(facts.foreignKeys).count else {
                return [loss("\(subject) REFERENCES \(key.parent.text)")]
            }
            return zip(["UPDATE", "DELETE"], key.rules.indices).compactMap { event, index in
                let isLost = key.rules[index] != Self.noAction && same.allSatisfy { $0.rules[index] == Self.noAction }
                return isLost && !same.isEmpty ? loss("ON \(event) \(key.rules[index]) of \(subject)") : nil
            }
        }
    }

    private static let noAction = "NO ACTION"

    // MARK: Other constraints

    /// Returns whether the rows of another table satisfy each CHECK as they did before: no CHECK is new, and none reads a
    /// column whose values or collation differ.
    func hasSameChecks(as other: TableShape) -> Bool { facts.checks.allSatisfy { hasSameCheck($0, as: other) } }

    func hasSameCheck(_ check: [SQLWord], as other: TableShape) -> Bool {
        other.facts.checks.contains(check) && hasSameInputs(check, as: other)
    }

    /// Returns statements that do not enforce the CHECK constraints.
    func ignoringChecks(_ statements: [String]) -> [String] {
        guard !facts.checks.isEmpty else { return statements }
        return ["PRAGMA ignore_check_constraints = ON"] + statements + ["PRAGMA ignore_check_constraints = OFF"]
    }

    /// Returns whether every column that an expression reads, directly or in generated columns, has the same values and
    /// collation as in another table.
    func hasSameInputs(_ words: some Sequence<SQLWord>, as other: TableShape) -> Bool {
        // A name in double quotes is a string in the table that lacks this column.
        var inputs = columns(in: words) + other.columns(in: words)
        var position = 0
        while position < inputs.count {
            let more = columns(in: facts.generated[inputs[position]] ?? [])
            inputs += more.filter { !inputs.contains($0) }
            position += 1
        }
        return inputs.allSatisfy { name in
            guard let new = column(name), let old = other.column(name) else { return false }
            return new.affinity(isStrict: facts.isStrict) == old.affinity(isStrict: other.facts.isStrict)
                && (old.isNotNull || !new.isNotNull) && new.generation == old.generation
                && facts.generated[name] == other.facts.generated[name]
                && facts.collations[name] == other.facts.collations[name]
        }
    }

    private func lostChecks(in target: TableShape) -> [Loss] {
        var new = target.facts.checks.subtracting(facts.checks).map { Set(columns(in: $0)) }
        return text.items.flatMap { item in
            item.expressions(after: "CHECK").compactMap { check in
                let words = SQLTokens.normalized(check)
                let columns = columns(in: words)
                guard !target.facts.checks.contains(words) else { return nil }
                // A new CHECK replaces only one of several.
                if let index = new.firstIndex(of: Set(columns)) {
                    new.remove(at: index)
                    return nil
                }
                return Loss(text: "CHECK (\(check))", columns: columns)
            }
        }
    }

    /// Returns the ON CONFLICT and DEFERRABLE clauses of which the other table has fewer on the same columns.
    private func lostClauses(in target: TableShape) -> [Loss] {
        // Each last word is one of the five that SQLite accepts after ON CONFLICT, so it is ASCII.
        func conflict(_ words: [SQLWord]) -> String {
            "ON CONFLICT \(String(decoding: words.last?.bytes ?? [], as: UTF8.self).uppercased())"
        }
        func clause(_ text: String, _ words: [SQLWord]) -> Clause {
            // The words of a column begin with its name; the columns of a table constraint are in parentheses.
            let list = words.firstIndex(of: "(").map { words[$0...] } ?? words.prefix(1)
            return Clause(text: text, columns: Set(columns(in: list)))
        }
        func clauses(_ facts: Facts) -> [Clause] {
            facts.conflicts.map { clause(conflict($0), $0) }
                + facts.deferrals.map { clause("DEFERRABLE INITIALLY DEFERRED", $0) }
        }
        var left = clauses(target.facts)
        return clauses(facts).compactMap { clause in
            if let index = left.firstIndex(of: clause) {
                left.remove(at: index)
                return nil
            }
            let names = clause.columns.sorted()
            return Loss(text: "\(clause.text) (\(list(names)))", columns: names)
        }
    }

    /// A clause of a constraint, with the constraint's columns.
    private struct Clause: Equatable {
        let text: String
        let columns: Set<SQLName>
    }

    /// Returns the expressions of generated columns whose values would be stored, and not computed again.
    private func lostExpressions(in target: TableShape) -> [Loss] {
        columns.filter { $0.generation != nil }.compactMap { column in
            let name = SQLName(column.name)
            guard let new = target.column(name), new.generation == nil, let item = text.column(name) else { return nil }
            let expression = item.expressions(after: "AS").first ?? ""
            return Loss(text: "the expression (\(expression)) of \(column.name)", columns: [name])
        }
    }

    // MARK: Text

    private func columns(in words: some Sequence<SQLWord>) -> [SQLName] {
        let words = Set(words)
        // The word of a quoted name that would be a value without the quotes begins with a quote.
        return columns.map { SQLName($0.name) }.filter { name in
            [[], Array("\"".utf8)].contains { words.contains(SQLWord(bytes: $0 + name.folded)) }
        }
    }

    private func list(_ columns: [SQLName]) -> String {
        columns.map { column($0)?.name ?? $0.text }.joined(separator: ", ")
    }
}
