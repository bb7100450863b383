internal import CipherCatalog
internal import CipherHistory
internal import CipherSQLText

/// Compares the definitions of the items that a database and its recorded version both have.
///
/// They are compared as SQLite interprets them, so formatting is not a difference. Changes that a step after the
/// version has already made, and columns that the steps do not know, are not differences either.
struct RecordedDefinitions {
    let version: SchemaVersion
    let wanted: SchemaSnapshot
    /// The schemas after the version.
    let later: [SchemaSnapshot]
    let scratch: ScratchDatabase

    /// Returns the indexes, views and triggers that exist but are different.
    func differingObjects(in found: SchemaSnapshot) -> Set<SchemaSnapshot.Item> {
        wanted.items.filter { item in
            guard item.kind != .table, item.kind != .column, let definition = found.definitions[item] else {
                return false
            }
            return definition != wanted.definitions[item] && !later.contains { $0.definitions[item] == definition }
        }
    }

    /// Returns findings about the tables that exist but are different, all of which are kept.
    func findings(in found: SchemaSnapshot) throws -> [Plan.Finding] {
        let tables = wanted.items.filter { $0.kind == .table && found.has($0) }
        return try tables.sorted { $0.description < $1.description }.flatMap { try findings(of: $0, in: found) }
    }

    private func findings(of table: SchemaSnapshot.Item, in found: SchemaSnapshot) throws -> [Plan.Finding] {
        guard let sql = found.sql[table], let wantedSQL = wanted.sql[table],
            SQLTokens.normalized(sql) != SQLTokens.normalized(wantedSQL)
        else { return [] }
        guard let mine = try shape(table, sql), let theirs = try shape(table, wantedSQL) else {
            return [finding(table, sql, wantedSQL)]
        }
        let difference = TableShapeDifference(mine, theirs)
        guard !difference.isEmpty, try !isMadeLater(table, mine) else { return [] }
        let columns = difference.columns.map { name in
            finding(
                table, column: name, mine.text.column(name)?.text ?? "", theirs.text.column(name)?.text ?? "")
        }
        return columns + (difference.isBeyondColumns ? [finding(table, sql, wantedSQL)] : [])
    }

    private func isMadeLater(_ table: SchemaSnapshot.Item, _ shape: TableShape) throws -> Bool {
        try Set(later.compactMap { $0.sql[table] }).contains { sql in
            try self.shape(table, sql).map { TableShapeDifference(shape, $0).isEmpty } ?? false
        }
    }

    /// Returns a table of a snapshot.
    ///
    /// - Returns: `nil` for a virtual table, which only its module can interpret.
    private func shape(_ table: SchemaSnapshot.Item, _ sql: String) throws -> TableShape? {
        let words = SQLTokens(sql, first: 2).tokens
        guard words.last?.isKeyword("VIRTUAL") != true, let text = TableText(sql) else { return nil }
        return try scratch.shape(of: text, name: table.name.text)
    }

    private func finding(
        _ table: SchemaSnapshot.Item, column: SQLName? = nil, _ mine: String, _ theirs: String
    ) -> Plan.Finding {
        let subject = column.map { "the column \(table.name.text).\($0.text)" } ?? "the table \(table.name.text)"
        return .kept(
            subject, table: table.name.text, column: column?.text,
            because: "the database defines it as \(mine), but the steps up to version \(version) define it "
                + "as \(theirs)")
    }
}

/// The differences between two tables in the columns that both have.
private struct TableShapeDifference {
    /// The columns that are defined differently.
    let columns: [SQLName]
    /// Whether keys, constraints or options differ.
    let isBeyondColumns: Bool

    var isEmpty: Bool { columns.isEmpty && !isBeyondColumns }

    init(_ mine: TableShape, _ theirs: TableShape) {
        let common = theirs.columns.map { SQLName($0.name) }.filter { mine.column($0) != nil }
        columns = common.filter { !mine.defines($0, like: theirs) }
        isBeyondColumns = mine.facts(about: Set(common)) != theirs.facts(about: Set(common))
    }
}

extension TableShape {
    /// Returns the facts without those that concern other columns, and without those that are part of one column's
    /// definition.
    fileprivate func facts(about common: Set<SQLName>) -> Facts {
        let others = Set(columns.map { SQLName($0.name) }).subtracting(common)
        let words = Set(others.map { SQLWord(bytes: $0.folded) })
        var facts = facts
        facts.collations = [:]
        facts.generated = [:]
        facts.checks = facts.checks.filter { words.isDisjoint(with: $0) }
        facts.conflicts = facts.conflicts.filter { words.isDisjoint(with: $0) }
        facts.deferrals = facts.deferrals.filter { words.isDisjoint(with: $0) }
        facts.foreignKeys = facts.foreignKeys.filter { key in
            key.columns.allSatisfy { pair in !others.contains { $0 == pair.first } }
        }
        facts.keys = facts.keys.filter { key in key.parts.allSatisfy { !others.contains($0.column) } }
        return facts
    }
}
