internal import CipherErrors
internal import CipherSQLite

/// The results of SQLite's `integrity_check` for a database.
///
/// Files of real, healthy apps cause complaints (such as NULL in a NOT NULL column). The copy must therefore have no
/// more complaints than the original, but may have as many.
/// Source: SQLite, "PRAGMA integrity_check".
struct IntegrityComplaints: Sendable, Equatable {
    /// The messages without their numbers, and how often each message occurred: row and page numbers differ between
    /// equal databases.
    private(set) var kinds: [String: Int] = [:]
    /// The first message of each kind, with its numbers.
    private var examples: [String: String] = [:]
    /// The indexes that the messages name, or whose b-trees they name.
    private(set) var indexes: Set<String> = []
    /// The error that ended the check early: a page that it could not read.
    private(set) var damage: DatabaseError?
    /// The reason why the check could not run, such as a function of the app that an index uses.
    private(set) var failure: String?
    /// The message of a virtual table's module that cannot read its own tables.
    private var moduleDamage: String?
    /// The tables whose indexes could not be compared with their rows, and why.
    private(set) var unchecked: [String] = []

    /// Creates an empty result.
    init() {}

    /// Runs the check.
    ///
    /// - Parameter tables: The tables with indexes that nothing else has compared with the rows. A table that cannot be
    ///   checked prevents the check of the other tables, unless each is checked separately.
    init(_ connection: Connection, tables: [SchemaName] = []) throws {
        // Constraints on values concern the rows, and the rows are compared.
        try connection.execute("PRAGMA ignore_check_constraints = ON")
        // A function that is not registered ends the check. The quicker check does not examine indexes.
        let hasModules = try connection.exists("SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage = 0")
        let lacksPageUses = try connection.mayLeaveOutPageUses()
        try check(connection, hasModules: hasModules)
        if hasModules {
            if failure != nil {
                // A virtual table may be what could not be checked.
                try connection.forgetModules()
                (kinds, indexes) = ([:], [])
                try check(connection, hasModules: false)
            }
            if let moduleDamage { add(moduleDamage, ofKind: Self.kind(of: moduleDamage)) }
        }
        if lacksPageUses, damage == nil { try addFreeList(connection) }
        guard let failure else { return }
        for table in tables {
            let reason =
                try Engine.current.checksTables ? run("PRAGMA integrity_check(\(table))", connection) : failure
            if let reason {
                unchecked.append("the indexes of table \(table) were not compared with its rows: \(reason)")
            }
        }
    }

    /// Checks everything; if that is not possible, everything but the content of the indexes.
    private mutating func check(_ connection: Connection, hasModules: Bool) throws {
        failure = try run("PRAGMA integrity_check(1000000000)", connection, hasModules: hasModules)
        guard failure != nil else { return }
        kinds = [:]
        _ = try run("PRAGMA quick_check(1000000000)", connection, hasModules: hasModules)
    }

    /// Adds complaints about the free list, which the check may not have examined.
    private mutating func addFreeList(_ connection: Connection) throws {
        let known = kinds
        _ = try run("PRAGMA integrity_check(sqlite_master)", connection)
        for (kind, count) in known { kinds[kind] = count }
    }

    /// Adds a complaint of SQLite's about pages, rows or values.
    private mutating func add(_ message: String, _ names: [Int64: String]) {
        let root = Self.treeRoot(message)
        let isAboutTable = message.hasPrefix("Tree ") && root.map { names[$0] == nil } ?? false
        add(message, ofKind: (isAboutTable ? Self.tableTree : "") + Self.kind(of: message))
        if let name = Self.indexName(message) ?? root.flatMap({ names[$0] }) { indexes.insert(name) }
    }

    private mutating func add(_ message: String, ofKind kind: String) {
        kinds[kind, default: 0] += 1
        examples[kind] = examples[kind] ?? message
    }

    /// Returns the names of the indexes by their root pages.
    private func indexNames(_ connection: Connection) throws -> [Int64: String] {
        let standing = try connection.standingIndexes()
        return Dictionary(standing.map { ($0.root, $0.name.description) }) { first, _ in first }
    }

    /// Runs one check.
    ///
    /// Returns the reason if it could not run to its end.
    ///
    /// - Parameter hasModules: Whether the modules of virtual tables check their own tables too. If these are damaged, FTS5
    ///   may ask for any amount of memory.
    private mutating func run(_ check: SQL, _ connection: Connection, hasModules: Bool = false) throws -> String? {
        let names = try indexNames(connection)
        do {
            try connection.computingBySchema(check) { row in
                // All faults of a file's pages are in one row, one per line. In other rows, a name may contain a line
                // break.
                let text = try row.get(String.self, at: 0)
                let isOfPages = text.hasPrefix("*** in database ")
                for message in isOfPages ? text.split(separator: "\n").dropFirst().map(String.init) : [text] {
                    if message != "ok" { add(message, names) }
                }
            }
            return nil
        } catch let error as DatabaseError where error.isOfModule || hasModules && error.isOutOfMemory {
            moduleDamage = error.message
            return error.message
        } catch let error as DatabaseError where error.isCorrupt {
            // An index's root page may not be an index page, for example. The messages before the error are used.
            damage = error
            return nil
        } catch let error as DatabaseError where error.code == DatabaseError.generic || error.isTooBig {
            return error.message
        }
    }

    /// The beginning of the kinds of messages about the b-tree of a table.
    private static let tableTree = "Table: "

    /// Returns the first message of a kind, and how many others there are.
    func description(of kind: String) -> String {
        let message = examples[kind] ?? kind
        let others = kinds[kind, default: 1] - 1
        return others == 0 ? message : "\(message), and \(others) more message\(others == 1 ? "" : "s") of this kind"
    }

    /// Returns the first complaint that occurs more often than in `original`.
    ///
    /// If the check of the original ended early, complaints about values are ignored: the rows have been compared, and
    /// their values are equal.
    func firstBeyond(_ original: IntegrityComplaints) -> String? {
        if let damage { return damage.message }
        if original.damage == nil, let failure, failure != original.failure { return failure }
        return kinds.first {
            $0.value > original.kinds[$0.key, default: 0]
                && (original.damage == nil || Self.isHarmlessToRows($0.key) || $0.key.hasPrefix(Self.tableTree))
        }.map { description(of: $0.key) }
    }

    /// Returns SQLite's complaints about values that the definitions of these tables forbid, except for NULL.
    ///
    /// Tables are skipped if SQLite cannot check them, because the app's functions are missing or a CHECK computes
    /// values that are too large.
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

    /// Returns the name at the end of a message about an index.
    private static func indexName(_ message: String) -> String? {
        guard isAboutIndex(withoutNumbers(message)),
            let before = [" missing from index ", " in index ", " differ from index ", " of index "]
                .compactMap({ message.firstRange(of: $0) }).first
        else { return nil }
        return String(message[before.upperBound...])
    }

    /// Returns the root page of the b-tree in a message.
    private static func treeRoot(_ message: String) -> Int64? {
        let prefix = ["Tree ", "On tree page "].first(where: message.hasPrefix)
        return prefix.flatMap { Int64(message.dropFirst($0.count).prefix { $0.isNumber }) }
    }

    /// Returns whether a complaint concerns damage that affects no row: of an index, or of pages that hold no rows.
    static func isHarmlessToRows(_ complaint: String) -> Bool {
        isAboutIndex(complaint)
            || [
                "Main freelist: ", "Freelist: ", "Page # is never used", "Page #: never used",
                "Page #: pointer map referenced", "Pointer map page #",
            ].contains(where: complaint.hasPrefix)
            || ["Bad ptr map entry", "Failed to read ptrmap"].contains(where: complaint.contains)
    }

    /// Returns whether a complaint concerns what the app stored, and no page: a value that a definition forbids, or a
    /// full-text index that does not match its text.
    ///
    /// Files of real, healthy apps cause such complaints, and SQLite itself complains about every contentless FTS4
    /// table. Source: SQLite, `pragma.c`, and `fts3.c`, `fts3IntegrityMethod`.
    static func isOfContent(_ complaint: String) -> Bool {
        let types = ["ANY", "BLOB", "INT", "INTEGER", "REAL", "TEXT"].map { "non-\($0) value in " }
        return
            (types + [
                "NULL value in ", "TEXT value in ", "NUMERIC value in ", "CHECK constraint failed in ",
                "unable to validate the inverted index for FTS", "malformed inverted index for FTS",
            ]).contains(where: complaint.hasPrefix)
    }

    /// Returns whether a complaint concerns the order of the rows of a WITHOUT ROWID table.
    static func isAboutKeyOrder(_ complaint: String) -> Bool {
        complaint.hasPrefix("row not in PRIMARY KEY order for ")
    }

    /// Returns whether a complaint concerns an index, or a b-tree that may be an index.
    static func isAboutIndex(_ complaint: String) -> Bool {
        // Complaints about an index of a virtual table are excluded.
        [
            "row # ", "rowid not at end-of-record for row # ", "wrong # of entries in index ",
            "non-unique entry in index ", "Tree ", "On tree page ",
        ].contains(where: complaint.hasPrefix)
    }

    /// Returns whether a complaint may concern an index, including a page that two b-trees claim.
    static func mayBeAboutIndex(_ complaint: String) -> Bool {
        isAboutIndex(complaint) || complaint.hasPrefix("#nd reference to page ")
    }

    /// Returns a message without its numbers, except for those in the name of an index.
    private static func kind(of message: String) -> String {
        guard let name = indexName(message) else { return withoutNumbers(message) }
        return withoutNumbers(String(message.dropLast(name.count))) + name
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
    /// Returns the tables that have a b-tree.
    func tablesWithRoots() throws -> [SchemaName] {
        try values(SchemaName.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
    }

    /// Returns the indexes and their root pages.
    fileprivate func standingIndexes() throws -> [(name: SchemaName, root: Int64)] {
        var indexes: [(name: SchemaName, root: Int64)] = []
        try forEachRow("SELECT name, rootpage FROM sqlite_master WHERE type = 'index'") {
            indexes.append((try $0.get(at: 0), try $0.get(at: 1)))
        }
        return indexes
    }
}
