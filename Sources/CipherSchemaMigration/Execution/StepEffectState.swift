internal import CipherCatalog
internal import CipherSQLText

/// What is known about the tables while an app's own steps run; rolling back a savepoint restores an earlier state.
struct StepEffectState {
    typealias Name = TableRowCounts.Name

    /// Rows that statements copied from one table to another.
    struct Copy {
        var target: Name
        /// The columns that were read.
        let columns: Set<SQLName>
        /// The number of copied rows that still exist in the original table.
        var rows: Int
    }

    struct Held {
        var rows: Int
        /// The operation that removed the rows from their original table.
        let operation: Plan.Operation
        /// The table that contained the rows.
        let table: String
    }

    /// The change in the number of rows of a table during an operation.
    struct Balance {
        var now = 0
        /// The lowest balance so far: rows that are added later are new rows, unless they are copied back.
        var least = 0

        mutating func settle() { least = min(least, now) }
    }

    /// The tables that existed before the migration.
    var users: Set<Name>
    /// The same tables, and those that their rows were copied to.
    var known: Set<Name>
    /// The copies that were made of the rows of each table.
    var copies: [Name: [Copy]] = [:]
    /// The users' rows in each table that the migration created that are no longer in their original table.
    var held: [Name: Held] = [:]
    // The following properties belong to the current operation's statements.
    /// Each table as it was before the first of these statements; `nil` for a table that did not exist.
    var first: [Name: TableRowCounts?] = [:]
    /// Each table as it was before the first statement that could remove something from it.
    var base: [Name: TableRowCounts] = [:]
    var altered: Set<Name> = []
    /// The number of rows that each table has gained or lost.
    var balance: [Name: Balance] = [:]
    /// The positions of the columns of `base` that were dropped.
    var dropped: [Name: Set<Int>] = [:]
    /// The new names of renamed columns, by their old names.
    var renamed: [Name: [SQLName: SQLName]] = [:]
    /// The losses of tables whose names other tables have taken.
    var losses: [Plan.Finding] = []

    init(_ state: DatabaseState) {
        users = Set(state.tables.map { Name($0.name) })
        known = users
    }

    /// Discards the effects of the previous operation's statements on the tables.
    mutating func beginOperation() {
        (first, base, altered) = ([:], [:], [])
        (balance, dropped, renamed, losses) = ([:], [:], [:], [])
    }

    /// Follows a table to a new name that no other table has.
    mutating func rename(_ old: Name, _ new: Name) {
        func move<Value>(_ values: inout [Name: Value]) {
            if let value = values.removeValue(forKey: old) { values[new] = value }
        }
        move(&first)
        move(&base)
        move(&dropped)
        move(&balance)
        move(&renamed)
        move(&held)
        copies[new, default: []] += copies.removeValue(forKey: old) ?? []
        if altered.remove(old) != nil { altered.insert(new) }
        if users.remove(old) != nil { users.insert(new) }
        if known.remove(old) != nil { known.insert(new) }
        redirect(old) { _ in new }
    }

    /// Assigns the copies in a table to another table, or removes them.
    mutating func redirect(_ old: Name, to place: (_ source: Name) -> Name?) {
        for source in copies.keys {
            copies[source] = copies[source]?.compactMap { copy in
                guard copy.target == old else { return copy }
                guard let target = place(source), target != source else { return nil }
                var copy = copy
                copy.target = target
                return copy
            }
        }
    }

    mutating func forget(_ name: Name) {
        users.remove(name)
        known.remove(name)
        copies[name] = nil
        held[name] = nil
    }
}
