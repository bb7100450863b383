internal import CipherErrors
internal import CipherSQLite

/// What SQLite's `integrity_check` has to say of a database.
///
/// Real and healthy apps' files have complaints (NULL in a NOT NULL column, say), so what counts is that the copy has none
/// that the original does not have. Source: SQLite, "PRAGMA integrity_check".
struct IntegrityComplaints: Sendable, Equatable {
    /// Messages with their numbers taken out, and how often each came: row and page numbers differ between equal ones.
    private(set) var kinds: [String: Int] = [:]
    /// The indexes that the messages name, or whose b-trees they do.
    private(set) var indexes: Set<String> = []
    /// What ended the check early: a page that it could not read.
    private(set) var damage: DatabaseError?
    /// Why the check could not run, such as a function of the app that an index uses.
    private(set) var failure: String?
    /// The tables whose indexes could not be held against their rows, and why.
    private(set) var unchecked: [String] = []

    /// None.
    init() {}

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
        var roots: Set<Int64> = []
        do {
            try connection.forEachRow(check) { row in
                // What is wrong with the pages of a file comes in one row, a line each.
                for line in try row.get(String.self, at: 0).split(separator: "\n") {
                    let message = String(line)
                    guard message != "ok", !message.hasPrefix("*** in database ") else { continue }
                    kinds[Self.withoutNumbers(message), default: 0] += 1
                    if let name = Self.indexName(message) { indexes.insert(name) }
                    if let root = Self.treeRoot(message) { roots.insert(root) }
                }
            }
            try nameIndexes(of: roots, connection)
            return nil
        } catch let error as DatabaseError where error.isCorrupt {
            // Of an index, say, whose root page is no index's. What was told before counts.
            damage = error
            try nameIndexes(of: roots, connection)
            return nil
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            return error.message
        }
    }

    private mutating func nameIndexes(of roots: Set<Int64>, _ connection: Connection) throws {
        indexes.formUnion(
            try connection.standingIndexes().filter { roots.contains($0.root) }.map(\.name.description))
    }

    /// The first complaint that `original` does not have as often.
    ///
    /// Where its check ended early, complaints about values do not count: the rows are compared, and their values are equal.
    func firstBeyond(_ original: IntegrityComplaints) -> String? {
        if let damage { return damage.message }
        if let failure, failure != original.failure { return failure }
        return kinds.first {
            $0.value > original.kinds[$0.key, default: 0]
                && (original.damage == nil || Self.isHarmlessToRows($0.key))
        }?.key
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
            } catch let error as DatabaseError
                where error.code == DatabaseError.generic || error.isTooBig || error.isCorrupt
            {
                continue
            }
        }
        return found.sorted()
    }

    /// The name at the end of a message about an index.
    private static func indexName(_ message: String) -> String? {
        guard isAboutIndex(withoutNumbers(message)),
            let before = [" missing from index ", " in index ", " differ from index ", " of index "]
                .compactMap({ message.firstRange(of: $0) }).first
        else { return nil }
        return String(message[before.upperBound...])
    }

    /// The root page of the b-tree that a message is about.
    private static func treeRoot(_ message: String) -> Int64? {
        let prefix = ["Tree ", "On tree page "].first(where: message.hasPrefix)
        return prefix.flatMap { Int64(message.dropFirst($0.count).prefix { $0.isNumber }) }
    }

    /// Whether a complaint tells of damage on which no row depends: of an index, or of pages that hold no row.
    static func isHarmlessToRows(_ complaint: String) -> Bool {
        isAboutIndex(complaint)
            || [
                "Main freelist: ", "Freelist: ", "Page # is never used",
                "Page #: never used",
                "Bad ptr map entry", "Failed to read ptrmap", "Page #: pointer map referenced", "Pointer map page #",
            ].contains(where: complaint.hasPrefix)
    }

    /// Whether a complaint tells of an index, or of a b-tree that may be one.
    static func isAboutIndex(_ complaint: String) -> Bool {
        // Those that speak of an index of a virtual table's are none of these.
        [
            "row # ", "rowid not at end-of-record for row # ", "wrong # of entries in index ",
            "non-unique entry in index ", "Tree ", "On tree page ",
        ].contains(where: complaint.hasPrefix)
    }

    /// Whether a complaint may tell of an index: also where it is a page that two b-trees claim.
    static func mayBeAboutIndex(_ complaint: String) -> Bool {
        isAboutIndex(complaint) || complaint.hasPrefix("#nd reference to page ")
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

extension Connection {
    /// The indexes and their root pages.
    fileprivate func standingIndexes() throws -> [(name: SchemaName, root: Int64)] {
        var indexes: [(name: SchemaName, root: Int64)] = []
        try forEachRow("SELECT name, rootpage FROM sqlite_master WHERE type = 'index'") {
            indexes.append((try $0.get(at: 0), try $0.get(at: 1)))
        }
        return indexes
    }
}
