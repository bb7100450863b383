internal import CipherCatalog
internal import CipherSQLite

/// The empty b-trees of the copy with the original's schema, ready to be filled.
struct CopySkeleton {
    /// A table to be filled.
    struct Table {
        let name: SchemaName
        /// Whether the table is `sqlite_sequence`, which SQLite fills while other tables are filled, and which is
        /// copied last.
        let isSequence: Bool
        /// The name of the table in the copy.
        let target: SQL
        let filling: TableFilling
    }

    /// The tables in the order in which they are filled.
    private(set) var tables: [Table] = []
    /// The indexes whose entries are computed once the rows and the schema are in place.
    private(set) var indexesToFill: [Index] = []
    /// The rows of the schema table whose names and text are set at the end.
    private var provisional: [Int64] = []
    /// The rows of the schema table that stay hidden until the end, with their root pages.
    private var heldBack: [(rowid: Int64, root: Int64)] = []

    /// An index to be filled.
    struct Index {
        let name: SchemaName
        let table: SchemaName
    }

    private struct Entry {
        let rowid: Int64
        let type: String
        let name: SchemaName
        let table: SchemaName
        /// Whether the entry is a table whose definition contains the word "without", as in WITHOUT ROWID.
        let mayLackRowID: Bool
        /// Whether the entry is a table whose definition contains the word "autoincrement".
        let mayCount: Bool
    }

    /// Creates the b-trees and writes the rows of the schema, with the rowids that they have in the original, in the
    /// current transaction.
    ///
    /// - Parameter rebuildsIndexes: Whether each index is filled from the rows of its table.
    init(_ connection: Connection, header: HeaderFields, rebuildsIndexes: Bool) throws {
        let entries = try Self.entries(connection)
        try Self.setSchemaFormat(header.schemaFormat, isEmpty: entries.isEmpty, connection)
        let roots = try Self.makeRoots(entries, connection)
        try connection.execute(
            """
            INSERT INTO copy.sqlite_master(rowid, type, name, tbl_name, rootpage, sql)
            SELECT rowid, type, name, tbl_name, rootpage, sql FROM main.sqlite_master
            WHERE rootpage > 0 ORDER BY rowid
            """)
        for (entry, root) in zip(entries, roots) {
            try connection.execute("UPDATE copy.sqlite_master SET rootpage = \(root.page) WHERE rowid = \(entry.rowid)")
        }
        let temporaryName = Self.temporaryName(besides: entries)
        let hasSequence = entries.contains { $0.name == "sqlite_sequence" }
        var refilled: Set<[UInt8]> = []
        var computed: Set<SchemaName> = []
        for (number, (entry, root)) in zip(entries, roots).enumerated() where entry.type == "table" {
            let temporaryName = temporaryName + String(number)
            let filling = try TableFilling(
                entry.name, temporaryName: temporaryName, isKeyed: root.isKeyed,
                lacksSequence: entry.mayCount && !hasSequence, rebuildsIndexes: rebuildsIndexes, connection)
            computed.formUnion(filling.computedIndexes)
            if let definition = filling.definition {
                try connection.execute(
                    """
                    UPDATE copy.sqlite_master SET name = \(temporaryName), tbl_name = \(temporaryName), sql = \(definition)
                    WHERE rowid = \(entry.rowid)
                    """)
                provisional.append(entry.rowid)
                refilled.insert(entry.table.folded)
            }
            tables.append(
                Table(
                    name: entry.name, isSequence: entry.name == "sqlite_sequence",
                    target: filling.definition == nil
                        ? "\(entry.name)" : SQL(text: temporaryName),
                    filling: filling))
        }
        for (entry, root) in zip(entries, roots)
        where entry.type == "index" && (refilled.contains(entry.table.folded) || computed.contains(entry.name)) {
            indexesToFill.append(Index(name: entry.name, table: entry.table))
            heldBack.append((entry.rowid, root.page))
            try connection.execute("DELETE FROM copy.sqlite_master WHERE rowid = \(entry.rowid)")
        }
        tables = tables.filter { !$0.isSequence } + tables.filter(\.isSequence)
    }

    /// Returns a prefix that no name in the schema has.
    private static func temporaryName(besides entries: [Entry]) -> String {
        var name = "cipherstore_filling_"
        while entries.contains(where: { $0.name.folded.starts(with: name.utf8) }) { name += "_" }
        return name
    }

    private static func entries(_ connection: Connection) throws -> [Entry] {
        var entries: [Entry] = []
        try connection.forEachRow(
            """
            SELECT rowid, type, name, tbl_name, sql FROM main.sqlite_master
            WHERE rootpage > 0 ORDER BY rowid
            """
        ) { row in
            entries.append(
                Entry(
                    rowid: try row.get(at: 0), type: try row.get(at: 1), name: try row.get(at: 2),
                    table: try row.get(at: 3), mayLackRowID: row.isNull(at: 4) || row.holds("without", at: 4),
                    mayCount: row.holds("autoincrement", at: 4)))
        }
        return entries
    }

    /// Adds entries without a b-tree (views, triggers, virtual tables) and the schema text that was withheld until now.
    ///
    /// This happens last, so that no trigger fires and no module is called while rows are copied.
    func complete(_ connection: Connection) throws {
        for (rowid, root) in heldBack {
            try connection.execute(
                """
                INSERT INTO copy.sqlite_master(rowid, type, name, tbl_name, rootpage, sql)
                SELECT rowid, type, name, tbl_name, \(root), sql FROM main.sqlite_master WHERE rowid = \(rowid)
                """)
        }
        for rowid in provisional {
            try connection.execute(
                """
                UPDATE copy.sqlite_master SET
                    name = (SELECT name FROM main.sqlite_master WHERE rowid = \(rowid)),
                    tbl_name = (SELECT tbl_name FROM main.sqlite_master WHERE rowid = \(rowid)),
                    sql = (SELECT sql FROM main.sqlite_master WHERE rowid = \(rowid))
                WHERE rowid = \(rowid)
                """)
        }
        try connection.execute(
            """
            INSERT INTO copy.sqlite_master(rowid, type, name, tbl_name, rootpage, sql)
            SELECT rowid, type, name, tbl_name, rootpage, sql FROM main.sqlite_master
            WHERE rootpage IS NULL OR rootpage <= 0 ORDER BY rowid
            """)
    }

    /// Sets the schema format.
    ///
    /// SQLite writes new files in format 4.
    ///
    /// A pragma sets format 1, and a column added to a table raises the format to 2 or 3. Below format 4, indexes in
    /// descending order are sorted in ascending order, so a copy must not change the format. Format and encoding are
    /// written with the first table, and remain when the last table is dropped.
    private static func setSchemaFormat(_ format: Int, isEmpty: Bool, _ connection: Connection) throws {
        let isRaised = format == 2 || format == 3
        guard isRaised || isEmpty && format > 0 else { return }
        try connection.execute("CREATE TABLE copy.cipherstore_format(a)")
        if isRaised {
            try connection.execute(
                SQL(text: "ALTER TABLE copy.cipherstore_format ADD COLUMN b" + (format == 3 ? " DEFAULT 1" : "")))
        }
        try connection.execute("DROP TABLE copy.cipherstore_format")
    }

    private struct Root {
        let page: Int64
        /// Whether the b-tree has keys: it is an index, or a WITHOUT ROWID table.
        let isKeyed: Bool
    }

    /// Creates one b-tree for each entry, of the kind that the schema requires.
    private static func makeRoots(_ entries: [Entry], _ connection: Connection) throws -> [Root] {
        let indexes = Set(entries.filter { $0.type == "index" }.map(\.name))
        var roots: [Root] = []
        roots.reserveCapacity(entries.count)
        try connection.makeObjects(entries.count) { number in
            let entry = entries[number]
            let isKeyed =
                try entry.type == "index" || entry.mayLackRowID && isWithoutRowID(entry.name, indexes, connection)
            let columns = isKeyed ? "a PRIMARY KEY) WITHOUT ROWID" : "a)"
            try connection.executeScript(text: "CREATE TABLE copy.cipherstore_root_\(number)(\(columns)")
            roots.append(Root(page: 0, isKeyed: isKeyed))
        } takeRows: {
            try takeRoots(&roots, connection)
        }
        return roots
    }

    /// Returns whether a table is WITHOUT ROWID: its primary key is listed as an index, but has no separate b-tree.
    private static func isWithoutRowID(
        _ table: SchemaName, _ indexes: Set<SchemaName>, _ connection: Connection
    ) throws -> Bool {
        let key = try IndexState.read(table: table, from: connection).first { $0.origin == .primaryKey }
        return key.map { !indexes.contains($0.name) } ?? false
    }

    private static func takeRoots(_ roots: inout [Root], _ connection: Connection) throws {
        let pages = try connection.values(Int64.self, "SELECT rootpage FROM copy.sqlite_master ORDER BY rowid")
        for (index, page) in zip((roots.count - pages.count)..., pages) {
            roots[index] = Root(page: page, isKeyed: roots[index].isKeyed)
        }
        try connection.execute("DELETE FROM copy.sqlite_master")
        try connection.forgetSchema("copy")
    }
}
