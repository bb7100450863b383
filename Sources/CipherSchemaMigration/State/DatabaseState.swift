package import CipherCatalog
package import CipherHistory
internal import CipherSQLText
package import CipherSQLite

/// The state of a database before a migration: its tables, its other objects and its version.
///
/// It is valid during the transaction in which it was read. Rows are counted when a source requests their number.
package struct DatabaseState {
    /// A view, an index or a trigger.
    package struct Object: Sendable, Equatable {
        package var type: String
        package var name: String
        /// The table of an index or a trigger.
        package var table: String
        package var sql: String

        /// What distinguishes an object from all others: SQLite keeps the names of triggers apart from other names.
        package struct Identity: Sendable, Hashable {
            let isTrigger: Bool
            let name: SQLName
        }

        package var identity: Identity { Identity(isTrigger: type == "trigger", name: SQLName(name)) }
    }

    /// The connection, for anything else that a source reads, such as its own version records.
    package let connection: Connection
    /// The tables, in the order of the schema, except SQLite's own.
    package private(set) var tables: [TableState]
    /// The views, indexes and triggers.
    package private(set) var objects: [Object]
    /// The version to start from: CipherStore's own record if it exists, otherwise the app's record.
    package let recorded: SchemaVersion?
    /// CipherStore's own record.
    let records: VersionRecords
    /// The value of `PRAGMA user_version`, whatever its meaning.
    package let userVersion: Int
    /// Whether the history table exists.
    package let hasHistory: Bool
    /// Whether CipherStore itself has recorded the version, so that it knows the schema.
    package let isAdopted: Bool
    /// Whether whole tables may be read to count their rows.
    let countsRows: Bool
    /// The first entry of the schema whose name or definition is not valid UTF-8, and was therefore read in a repaired
    /// form.
    let entryThatIsNoText: SchemaName?
    /// Whether the state omits a table that the database still has until it is dropped.
    private(set) var lacksTables = false

    /// Reads the state.
    ///
    /// - Parameters:
    ///   - recorded: Returns the app's own record; called only as long as CipherStore has no record.
    ///   - countsRows: Whether ``rowCount(of:)`` may read whole tables.
    package init(
        of connection: Connection, countsRows: Bool = true, recorded: () throws -> SchemaVersion?
    ) throws {
        self.connection = connection
        self.countsRows = countsRows
        hasHistory = try HistoryTable.exists(connection)
        records = try VersionRecords(connection)
        isAdopted = records.isOwn
        userVersion = try connection.value(Int.self, "PRAGMA main.user_version") ?? 0
        self.recorded = try records.version ?? recorded()
        entryThatIsNoText = try Self.entryThatIsNoText(connection)
        objects = try Self.readObjects(connection)
        tables = try Self.readTables(connection)
    }

    /// Returns a table by its name.
    package func table(_ name: String) -> TableState? {
        let wanted = SQLName(name)
        return tables.first { SQLName($0.name) == wanted }
    }

    /// Returns the state without a table, its indexes and its triggers, for a source that drops it first.
    package func without(table name: String) -> DatabaseState {
        var state = self
        state.lacksTables = true
        state.tables.removeAll { SQLName($0.name) == SQLName(name) }
        state.objects.removeAll { $0.type != "view" && SQLName($0.table) == SQLName(name) }
        return state
    }

    /// Returns the state with other texts of views, indexes and triggers, for a source that recreates them first.
    package func replacing(_ texts: [Object]) -> DatabaseState {
        var state = self
        state.objects = objects.map { object in
            texts.first { $0.identity == object.identity } ?? object
        }
        return state
    }

    /// Returns whether the database contains nothing of the app except tables that record its version.
    func isFresh(besides recordTables: Set<SQLName>) -> Bool {
        objects.allSatisfy { recordTables.contains(SQLName($0.table)) }
            && tables.allSatisfy {
                SQLName($0.name) == SQLName(HistoryTable.name) || recordTables.contains(SQLName($0.name))
            }
    }

    /// Returns the number of rows in a table; `nil` if this state does not count rows.
    package func rowCount(of table: String) throws -> Int? {
        countsRows ? try countedRows(of: table) : nil
    }

    /// Returns the number of rows in a table, which it counts in any case.
    package func countedRows(of table: String) throws -> Int {
        // For `count(*)`, SQLite walks the b-tree without calling the progress handler. The statement is not cached:
        // for one table after another, it would push all other statements out of the cache.
        try connection.withStatement("SELECT count(1) FROM main.\(identifier: table)", isKept: false) { statement in
            try statement.step() ? Int(statement.integer(0)) : 0
        }
    }

    /// Returns whether a table contains any row.
    package func holdsRows(_ table: String) throws -> Bool {
        try connection.value(Bool.self, "SELECT EXISTS (SELECT 1 FROM main.\(identifier: table))") ?? false
    }

    /// Returns whether a new row of a table needs a value in any column other than the given ones.
    package func needsValue(_ table: TableState, besides given: [String]) throws -> Bool {
        let given = Set(given.map(SQLName.init))
        // A key without an index is the rowid, which SQLite assigns.
        let hasKeyIndex = try IndexState.read(table: SchemaName(bytes: table.name.utf8), from: connection)
            .contains { $0.origin == .primaryKey }
        return table.columns.contains { column in
            column.isNotNull && column.defaultSQL == nil && column.generation == nil
                && !given.contains(SQLName(column.name)) && (column.primaryKeyPosition == 0 || hasKeyIndex)
        }
    }

    private static func entryThatIsNoText(_ connection: Connection) throws -> SchemaName? {
        var found: SchemaName?
        try connection.forEachRow("SELECT name, tbl_name, sql FROM main.sqlite_master") { row in
            for column in 0..<3 where found == nil {
                if try row.get(SchemaName?.self, at: column)?.isUnicode == false { found = try row.get(at: 0) }
            }
        }
        return found
    }

    private static func readTables(_ connection: Connection) throws -> [TableState] {
        var found: [(name: String, isVirtual: Bool, sql: String?)] = []
        try connection.forEachRow(
            "SELECT name, coalesce(rootpage, 0) = 0, sql FROM main.sqlite_master WHERE type = 'table' ORDER BY rowid"
        ) { found.append((try $0.get(at: 0), try $0.get(at: 1), try $0.get(at: 2))) }
        return try found.filter { !SQLName($0.name).isOfSQLite }.map { name, isVirtual, sql in
            let mayRefer = !isVirtual && sql?.isLike("%references%") ?? false
            return TableState(
                name: name, columns: isVirtual ? [] : try ColumnState.read(table: name, from: connection),
                isVirtual: isVirtual, sql: sql,
                references: mayRefer
                    ? try ForeignKeyState.read(table: name, from: connection).map { SQLName($0.parent) } : [])
        }
    }

    static func readObjects(_ connection: Connection) throws -> [Object] {
        var objects: [Object] = []
        // The indexes of UNIQUE and PRIMARY KEY have no separate SQL text; they belong to their table.
        try connection.forEachRow(
            "SELECT type, name, tbl_name, sql FROM main.sqlite_master WHERE type <> 'table' AND sql IS NOT NULL"
        ) { row in
            objects.append(
                Object(
                    type: try row.get(at: 0), name: try row.get(at: 1), table: try row.get(at: 2),
                    sql: try row.get(at: 3)))
        }
        return objects
    }
}
