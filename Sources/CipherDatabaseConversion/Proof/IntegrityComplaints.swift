internal import CipherErrors
internal import CipherSQLite

/// What SQLite's `integrity_check` has to say of a database.
///
/// Real and healthy apps' files have complaints (NULL in a NOT NULL column, say), so what counts is that the copy has none
/// that the original does not have. Source: SQLite, "PRAGMA integrity_check".
struct IntegrityComplaints: Sendable, Equatable {
    /// Messages with their numbers taken out, and how often each came: row and page numbers differ between equal ones.
    private(set) var kinds: [String: Int] = [:]
    /// Why the check could not run, such as a function of the app that an index uses.
    private(set) var failure: String?
    /// The tables whose indexes could not be held against their rows, and why.
    private(set) var unchecked: [String] = []

    /// Runs the check.
    ///
    /// - Parameter tables: Those with indexes that nothing else has compared with the rows. One that cannot be checked keeps
    ///   the others from being, unless each is checked by itself.
    init(_ connection: Connection, tables: [SchemaName] = []) throws {
        // Constraints on values are the rows' matter, and those are compared.
        try connection.execute("PRAGMA ignore_check_constraints = ON")
        // A function that is not registered ends the check; the quicker one does not look into indexes.
        failure = try run("PRAGMA integrity_check(1000000000)", connection)
        guard let failure else { return }
        kinds = [:]
        if try run("PRAGMA quick_check(1000000000)", connection) != nil {
            guard Engine.current.checksTables else { return }
            // Since SQLite 3.44 it asks the modules of virtual tables, and one may need a tokenizer that only the app has.
            kinds = [:]
            let all = try connection.values(
                SchemaName.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
            for table in all { _ = try run("PRAGMA quick_check(\(table))", connection) }
        }
        for table in tables {
            let reason =
                try Engine.current.checksTables ? run("PRAGMA integrity_check(\(table))", connection) : failure
            if let reason { unchecked.append("the indexes of table \(table) (\(reason))") }
        }
    }

    /// Runs one check.
    ///
    /// Returns why it could not run to its end.
    private mutating func run(_ check: SQL, _ connection: Connection) throws -> String? {
        do {
            try connection.forEachRow(check) { row in
                let message = try row.get(String.self, at: 0)
                if message != "ok" { kinds[Self.withoutNumbers(message), default: 0] += 1 }
            }
            return nil
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            return error.message
        }
    }

    /// The first complaint that `original` does not have as often.
    func firstBeyond(_ original: IntegrityComplaints) -> String? {
        if let failure, failure != original.failure { return failure }
        return kinds.first { $0.value > original.kinds[$0.key, default: 0] }?.key
    }

    /// What SQLite says of values that these tables' definitions forbid, NULL apart; nothing where it cannot tell, without
    /// the app's functions or for the size of what a CHECK computes.
    static func ofValues(in tables: [SchemaName], _ connection: Connection) throws -> [String] {
        let checks: [SQL] =
            Engine.current.checksTables
            ? tables.map { "PRAGMA quick_check(\($0))" } : tables.isEmpty ? [] : ["PRAGMA quick_check"]
        var found: Set<String> = []
        for check in checks {
            do {
                try connection.forEachRow(check) { row in
                    let message = try row.get(String.self, at: 0)
                    if message != "ok", !message.hasPrefix("NULL value in ") { found.insert(message) }
                }
            } catch let error as DatabaseError where error.code == DatabaseError.generic || error.isTooBig {
                continue
            }
        }
        return found.sorted()
    }

    /// Whether a complaint tells of an index, or of a b-tree that may be one.
    static func isAboutIndex(_ complaint: String) -> Bool {
        // Those that speak of an index of a virtual table's are none of these.
        [
            "row # ", "rowid not at end-of-record for row # ", "wrong # of entries in index ",
            "non-unique entry in index ", "Tree ", "On tree page ",
        ].contains(where: complaint.hasPrefix)
    }

    private static func withoutNumbers(_ message: String) -> String {
        var result = ""
        for character in message {
            guard character.isNumber else {
                result.append(character)
                continue
            }
            if result.last != "#" { result.append("#") }
        }
        return result
    }
}
