internal import CipherCatalog
internal import CipherSQLText

/// What is known of the tables while steps of an app's own run, which a savepoint that is rolled back takes back.
struct StepEffectState {
    typealias Name = TableRowCounts.Name

    /// What statements took from one table and wrote to another.
    struct Copy {
        var target: Name
        /// The columns that were read.
        let columns: Set<SQLName>
        /// How many rows of them are not gone from where they were.
        var rows: Int
    }

    struct Held {
        var rows: Int
        /// What took the rows away from where they were.
        let operation: Plan.Operation
        /// Where they were.
        let table: String
    }

    /// How many rows a table has more than at first.
    struct Balance {
        var now = 0
        /// At the worst moment: what is added afterwards is something else, unless it is a copy of what was there.
        var least = 0

        mutating func settle() { least = min(least, now) }
    }

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
    var first: [Name: TableRowCounts?] = [:]
    /// As it was before the first of them that could take something away.
    var base: [Name: TableRowCounts] = [:]
    var altered: Set<Name> = []
    /// How many rows a table has gained, or lost.
    var balance: [Name: Balance] = [:]
    /// The columns of `base` that are dropped, by their place.
    var dropped: [Name: Set<Int>] = [:]
    /// What columns are called since, by their names before.
    var renamed: [Name: [SQLName: SQLName]] = [:]
    /// What was lost with tables whose names others have since.
    var losses: [Plan.Finding] = []

    init(_ state: DatabaseState) {
        users = Set(state.tables.map { Name($0.name) })
        known = users
    }

    /// Forgets what the statements of the operation before have done to the tables.
    mutating func beginOperation() {
        (first, base, altered) = ([:], [:], [])
        (balance, dropped, renamed, losses) = ([:], [:], [:], [])
    }

    /// Follows a table to another name, which no other table has.
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

    /// Gives the copies in a table another place, or none.
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
