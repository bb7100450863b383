internal import CCipherEngine

/// The tables and columns that statements read or write, as SQLite reports them during compilation.
///
/// Names are folded as SQLite compares them, in ASCII only. In a name that is not valid UTF-8, bytes are replaced in
/// the same way everywhere, so two such names may be treated as one, but one is never treated as two.
///
/// Source: SQLite, "Authorizer Action Codes".
package struct TableAccess: Sendable, Equatable {
    /// The part of one table that is accessed.
    package enum Columns: Sendable, Equatable {
        /// Rows are inserted, deleted or counted, or it is not known which columns are accessed.
        case all
        case some(Set<String>)

        fileprivate func overlaps(_ other: Columns) -> Bool {
            switch (self, other) {
            case (.some(let mine), .some(let theirs)): !mine.isDisjoint(with: theirs)
            default: true
            }
        }

        fileprivate mutating func formUnion(_ other: Columns) {
            if case .some(let mine) = self, case .some(let theirs) = other {
                self = .some(mine.union(theirs))
            } else {
                self = .all
            }
        }
    }

    /// Whether anything may be accessed, as after a schema change.
    package var isEverything = false
    package private(set) var tables: [String: Columns] = [:]

    package init() {}

    /// Creates a record of access to all columns of some tables.
    package init(tables: [String]) {
        for table in tables { add(table, .all) }
    }

    package static let everything: TableAccess = {
        var access = TableAccess()
        access.isEverything = true
        return access
    }()

    package var isEmpty: Bool { !isEverything && tables.isEmpty }

    package mutating func add(_ table: String, _ columns: Columns) {
        let name = Self.folded(table)
        if tables[name]?.formUnion(columns) == nil { tables[name] = columns }
    }

    package mutating func formUnion(_ other: TableAccess) {
        isEverything = isEverything || other.isEverything
        for (table, columns) in other.tables where tables[table]?.formUnion(columns) == nil { tables[table] = columns }
    }

    /// Returns whether both access the same column, or one accesses all columns of a table that the other accesses.
    package func overlaps(_ other: TableAccess) -> Bool {
        if isEmpty || other.isEmpty { return false }
        if isEverything || other.isEverything { return true }
        return tables.contains { other.tables[$0.key]?.overlaps($0.value) == true }
    }

    /// Returns a name as SQLite compares it.
    package static func folded(_ name: String) -> String {
        guard name.utf8.contains(where: { 0x41...0x5a ~= $0 }) else { return name }
        return String(decoding: name.utf8.map { 0x41...0x5a ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
    }
}

/// The tables and columns that one statement reads and writes.
struct StatementAccess {
    /// The codes of the actions to record; the others do not concern tables.
    static let codes: Set<Int32> = [
        SQLITE_READ, SQLITE_UPDATE, SQLITE_INSERT, SQLITE_DELETE, SQLITE_PRAGMA, SQLITE_SELECT,
    ]

    var reads = TableAccess()
    var writes = TableAccess()

    /// Adds an action that SQLite reports about a statement that it compiles.
    mutating func add(_ code: Int32, _ first: String, _ second: String?, isOfTrigger: Bool) {
        switch code {
        case SQLITE_READ:
            // Without a column, rows are counted or only searched for.
            let column = second ?? ""
            reads.add(first, column.isEmpty ? .all : .some([TableAccess.folded(column)]))
        case SQLITE_UPDATE:
            // The conflict clause of a trigger's UPDATE is not reported, and REPLACE removes rows. Updating the rowid
            // by the name rowid, oid or _rowid_ also changes the column that is an alias for it.
            let column = TableAccess.folded(second ?? "rowid")
            writes.add(first, isOfTrigger || column == "rowid" ? .all : .some([column]))
            changeSchema(first)
        case SQLITE_INSERT, SQLITE_DELETE:
            writes.add(first, .all)
            changeSchema(first)
        case SQLITE_PRAGMA:
            // The pragma reads something other than a table, and may set anything.
            reads.isEverything = true
            if second != nil { writes.isEverything = true }
        case SQLITE_SELECT:
            // Rows that are only counted are not reported.
            if !Engine.current.tellsOfCountedTables { reads.isEverything = true }
        default: break
        }
    }

    /// Whether the schema may be different after the statement has run.
    var changesSchema: Bool { writes.isEverything }

    /// Records a change of the schema, after which each name may refer to something else.
    private mutating func changeSchema(_ table: String) {
        if ["sqlite_master", "sqlite_schema"].contains(TableAccess.folded(table)) { writes.isEverything = true }
    }

    /// Extends columns to whole tables if the statement may remove rows because of a conflict.
    mutating func end(_ sql: some BidirectionalCollection<UInt8>) {
        guard sql.containsWord("replace") else { return }
        writes = TableAccess(tables: Array(writes.tables.keys), isEverything: writes.isEverything)
    }
}

extension TableAccess {
    fileprivate init(tables: [String], isEverything: Bool) {
        self.init(tables: tables)
        self.isEverything = isEverything
    }
}

extension BidirectionalCollection<UInt8> {
    /// Returns whether the text contains an ASCII word, in any case, including in a string or a comment.
    package func containsWord(_ word: StaticString) -> Bool {
        word.withUTF8Buffer { word in
            guard let first = word.first else { return true }
            var rest = self[...]
            var before: UInt8?
            while let start = rest.firstIndex(where: { $0 | 0x20 == first }) {
                if start != rest.startIndex { before = rest.prefix(upTo: start).suffix(1).first }
                rest = rest[start...]
                if rest.count >= word.count, zip(rest, word).allSatisfy({ $0 | 0x20 == $1 }),
                    before?.isOfName != true, rest.dropFirst(word.count).first?.isOfName != true
                {
                    return true
                }
                before = rest.first
                rest = rest.dropFirst()
            }
            return false
        }
    }
}

extension UInt8 {
    /// Whether SQLite treats the byte as part of an unquoted name.
    fileprivate var isOfName: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x5f, 0x24, 0x80...: true
        default: false
        }
    }
}

extension Connection {
    /// Runs `body`, and records what its statements read.
    ///
    /// Details are known only for statements that are compiled while the connection is lent.
    package func recordingReads<Result>(_ body: () throws -> Result) rethrows -> (Result, TableAccess) {
        let before = reads
        reads = TableAccess()
        defer {
            reads = before
            latestRecorded = nil
        }
        let result = try body()
        return (result, reads ?? .everything)
    }

    /// Begins to record writes, for ``takeWrites()``.
    package func recordWrites() { writes = TableAccess() }

    /// Returns what was written since ``recordWrites()``; everything if that method was not called.
    package func takeWrites() -> TableAccess {
        defer {
            writes = nil
            latestRecorded = nil
        }
        return writes ?? .everything
    }

    /// Adds an action that SQLite reports during compilation.
    func recordAccess(
        _ code: Int32, _ first: UnsafePointer<CChar>?, _ second: UnsafePointer<CChar>?, isOfTrigger: Bool
    ) {
        guard isLent, StatementAccess.codes.contains(code) else { return }
        let subject = first.map { String(cString: $0) } ?? ""
        let detail = second.map { String(cString: $0) }
        if isCompiling {
            compiledAccess?.add(code, subject, detail, isOfTrigger: isOfTrigger)
        } else {
            if lateAccess == nil { lateAccess = StatementAccess() }
            lateAccess?.add(code, subject, detail, isOfTrigger: isOfTrigger)
        }
    }

    /// Returns what the statement that was just compiled reads and writes.
    func takeCompiledAccess(of sql: [UInt8]) -> StatementAccess? {
        defer { compiledAccess = nil }
        compiledAccess?.end(sql)
        return compiledAccess
    }

    /// Records a statement that is about to run.
    func record(_ statement: Statement) {
        if lateAccess != nil { lateAccess = nil }
        if statement.changesSchema { valueStatements = [:] }
        guard reads != nil || writes != nil, latestRecorded !== statement else { return }
        latestRecorded = statement
        if let access = statement.access {
            record(access)
        } else {
            reads?.isEverything = true
            writes?.isEverything = true
        }
    }

    /// Records what was compiled while a statement ran, and returns whether nothing was compiled.
    func recordLateAccess(_ statement: Statement) -> Bool {
        guard lateAccess != nil, var late = lateAccess else { return true }
        lateAccess = nil
        late.end(statement.bytes)
        record(late)
        return false
    }

    private func record(_ access: StatementAccess) {
        if !access.reads.isEmpty { reads?.formUnion(access.reads) }
        if !access.writes.isEmpty { writes?.formUnion(access.writes) }
    }
}
