internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// A copy of a database's schema in which SQLite itself makes the renames, so that their effect on every text is exact.
///
/// SQLite refuses to rename anything while a view or trigger cannot be compiled, so the copy does not contain these.
struct RenamedCopy {
    private let scratch: ScratchDatabase
    /// The texts of the tables, except virtual ones.
    private(set) var tables: [SQLName: SQLWord] = [:]
    /// The views, indexes and triggers.
    private(set) var objects: [DatabaseState.Object.Identity: DatabaseState.Object] = [:]

    var connection: Connection { scratch.connection }

    /// Creates a copy; returns `nil` if the engine cannot rename columns, or if it does not accept the whole schema.
    init?(of state: DatabaseState, _ scratch: ScratchDatabase) throws {
        guard Engine.current.canRenameColumns else { return nil }
        self.scratch = try scratch.copy(of: state.connection)
        guard self.scratch.isComplete else { return nil }
        try read()
        try match(state)
        let dangling = try self.scratch.dangling()
        try drop(objects.values.filter { $0.type != "index" && !dangling.messages(about: $0).isEmpty })
    }

    /// Gives the copy the tables and texts of a state that differs from the database.
    private mutating func match(_ state: DatabaseState) throws {
        for name in tables.keys where state.lacksTables && state.table(name.text) == nil {
            try dropTable(name.text)
        }
        let wanted = Dictionary(state.objects.map { ($0.identity, $0) }) { first, _ in first }
        try drop(objects.values.filter { wanted[$0.identity] != $0 })
        for object in state.objects where objects[object.identity] == nil {
            do {
                try connection.execute(SQL(text: object.sql))
            } catch is DatabaseError {
                // The object cannot be compiled, so it is left out.
            }
        }
        try read()
    }

    /// Returns the copy after statements that change its schema; `nil` if SQLite refuses them.
    func running(_ statements: [String]) throws -> RenamedCopy? {
        do {
            try connection.savepoint { for sql in statements { try connection.execute(SQL(text: sql)) } }
        } catch is DatabaseError {
            return nil
        }
        var copy = self
        try copy.read()
        return copy
    }

    mutating func dropTable(_ name: String) throws {
        try connection.execute("DROP TABLE IF EXISTS main.\(identifier: name)")
        try read()
    }

    mutating func drop(_ dropped: [DatabaseState.Object]) throws {
        for object in dropped {
            // Dropping a view also drops its triggers.
            try connection.execute(
                "DROP \(SQL(text: object.type.uppercased())) IF EXISTS main.\(identifier: object.name)")
        }
        try read()
    }

    private mutating func read() throws {
        objects = Dictionary(try scratch.objects().map { ($0.identity, $0) }) { first, _ in first }
        tables = [:]
        try connection.forEachRow(
            "SELECT name, sql FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0 AND sql IS NOT NULL"
        ) { row in
            let name = SQLName(try row.get(at: 0))
            if !name.isOfSQLite { tables[name] = SQLWord(stringLiteral: try row.get(at: 1)) }
        }
    }
}
