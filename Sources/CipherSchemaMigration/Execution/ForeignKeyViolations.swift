internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The rows whose foreign keys reference missing rows.
///
/// Legacy databases contain such rows, so a migration must not create new ones, but it may leave old ones. An old
/// violation may remain in its row, or in another row that references the same missing row, because a step may copy
/// rows.
struct ForeignKeyViolations {
    /// A child table and the columns of a foreign key.
    ///
    /// The parent table is not included: if a key is changed to reference another table, a row whose parent is missing
    /// still violates it. The number that SQLite assigns to a foreign key is not included either, because it shifts
    /// when a column with another foreign key is appended.
    private struct Reference: Hashable {
        let child: SQLName
        let columns: [SQLName]
    }

    /// A row, identified by its rowid or primary key, and the key whose parent row is missing.
    private struct Row: Hashable {
        let identity: [SQLWord]
        let key: [SQLWord]
    }

    private struct Rows {
        let child: String
        let parent: String
        let rows: [Row]
    }

    private var found: [Reference: Rows] = [:]
    /// Tables whose foreign keys SQLite cannot check, for example because the parent's column is not unique or its
    /// collation is not registered.
    private var uncheckable: [SQLName: (name: String, error: DatabaseError)] = [:]
    private let tables: Set<SQLName>

    /// Checks the tables that have foreign keys.
    ///
    /// - Parameters:
    ///   - children: The tables to check; by default all.
    ///   - tables: All tables.
    init(in connection: Connection, of children: [TableState]? = nil, tables: [TableState]) throws {
        self.tables = Set(tables.map { SQLName($0.name) })
        for table in children ?? tables where !table.references.isEmpty {
            do {
                for key in try ViolatedForeignKey.all(of: table, among: tables, connection) {
                    var rows: [Row] = []
                    try connection.forEachRow(SQL(text: key.violations)) { row in
                        let words = (0..<row.count).map { Self.word(row.value(at: $0)) }
                        rows.append(
                            Row(identity: Array(words[key.columns.count...]), key: Array(words[..<key.columns.count])))
                    }
                    let reference = Reference(child: SQLName(table.name), columns: key.columns.map(SQLName.init))
                    found[reference] = Rows(
                        child: table.name, parent: key.parent, rows: rows + (found[reference]?.rows ?? []))
                }
            } catch let error as DatabaseError where error.code == DatabaseError.generic {
                uncheckable[SQLName(table.name)] = (table.name, error)
            }
        }
    }

    /// Returns the same word for values that a change of the column's type converts into each other.
    private static func word(_ value: Value) -> SQLWord {
        switch value {
        case .null: SQLWord(bytes: [])
        case .integer(let integer): SQLWord(bytes: Array("\(integer)".utf8))
        case .real(let real): SQLWord(bytes: Array((Int64(exactly: real).map { "\($0)" } ?? "\(real)").utf8))
        case .text(let text): SQLWord(bytes: Array(text.utf8))
        case .blob(let bytes): SQLWord(bytes: Array(bytes))
        }
    }

    // MARK: Comparing

    /// Throws if there is a violation that did not exist before.
    ///
    /// - Parameter origins: The former names of renamed tables and their columns.
    func requireNoneBeyond(
        _ before: ForeignKeyViolations, origins: [SQLName: Plan.Origin], path: String
    ) throws {
        // Rows of a dropped table may have been copied elsewhere before.
        let renamed = Set(origins.values.map(\.table))
        var gone = before.found.filter { !tables.contains($0.key.child) && !renamed.contains($0.key.child) }
            .map { (parent: SQLName($0.value.parent), keys: Self.counted($0.value.rows.map(\.key))) }
        for (reference, rows) in found {
            let origin = origins[reference.child]
            let child = origin?.table ?? reference.child
            // For a table that could not be checked before, it is unknown which violations are new.
            guard before.uncheckable[child] == nil else { continue }
            let old = before.found[
                Reference(child: child, columns: reference.columns.map { origin?.columns[$0] ?? $0 })]
            var new = Self.beyond(old?.rows ?? [], in: rows.rows)
            for index in gone.indices
            where gone[index].parent == SQLName(rows.parent) || !tables.contains(gone[index].parent) {
                new.removeAll { Self.take($0.key, from: &gone[index].keys) }
            }
            guard new.isEmpty else {
                throw StoreError.unreachable(
                    path,
                    "the migration would leave \(new.count) \(new.count == 1 ? "row" : "rows") of \(rows.child) with "
                        + "references to missing rows of \(rows.parent)", correct: .schemaOrRows)
            }
        }
        for (table, failure) in uncheckable where before.uncheckable[origins[table]?.table ?? table] == nil {
            throw StoreError.unreachable(
                path, "after the migration, the foreign keys of \(failure.name) could not be checked",
                correct: .schema, underlying: failure.error)
        }
    }

    /// Returns the rows that match no earlier row: neither the same row with the same key, nor another row with the
    /// same key, nor the same row with another key.
    private static func beyond(_ old: [Row], in rows: [Row]) -> [Row] {
        var left = counted(old)
        let changed = rows.filter { !take($0, from: &left) }
        var away = Dictionary(
            left.map { ($0.key.key, Array(repeating: $0.key.identity, count: $0.value)) }, uniquingKeysWith: +)
        let others = changed.filter { away[$0.key]?.popLast() == nil }
        var identities = counted(away.values.joined().filter { !$0.isEmpty })
        return others.filter { !take($0.identity, from: &identities) }
    }

    private static func counted<Element>(_ elements: [Element]) -> [Element: Int] {
        Dictionary(elements.map { ($0, 1) }, uniquingKeysWith: +)
    }

    private static func take<Element>(_ element: Element, from counts: inout [Element: Int]) -> Bool {
        guard let count = counts[element], count > 0 else { return false }
        counts[element] = count - 1
        return true
    }
}
