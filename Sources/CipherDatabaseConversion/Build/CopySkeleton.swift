internal import CipherCatalog
internal import CipherSQLite

/// The empty b-trees of the copy under the original's schema, ready to be filled.
struct CopySkeleton {
    /// A table to be filled.
    struct Table {
        let name: SchemaName
        /// `sqlite_sequence`, which fills by itself while other tables are, and is copied last.
        let isSequence: Bool
        /// Its name in the copy.
        let target: SQL
        let filling: TableFilling
    }

    /// The tables in the order in which they are filled.
    private(set) var tables: [Table] = []
    /// The indexes whose entries are computed once the rows and the schema are in place.
    private(set) var indexesToFill: [Index] = []
    /// Rows of the schema table whose names and text are put in at the end.
    private var provisional: [Int64] = []
    /// Rows of the schema table that stay hidden until the end, with their root pages.
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
        /// Whether it is a table whose text has the word of WITHOUT ROWID in it.
        let mayLackRowID: Bool
    }

    /// Makes the b-trees and writes the schema's rows, with the rowids they have in the original, in a transaction that is
    /// open.
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
        var refilled: Set<[UInt8]> = []
        var computed: Set<SchemaName> = []
        for (number, (entry, root)) in zip(entries, roots).enumerated() where entry.type == "table" {
            let temporaryName = temporaryName + String(number)
            let filling = try TableFilling(
                entry.name, temporaryName: temporaryName, isKeyed: root.isKeyed, rebuildsIndexes: rebuildsIndexes,
                connection)
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

    /// How names begin that nothing in the schema has.
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
                    table: try row.get(at: 3), mayLackRowID: row.isNull(at: 4) || row.holds("without", at: 4)))
        }
        return entries
    }

    /// Adds what has no b-tree (views, triggers, virtual tables) and the schema text that was held back.
    ///
    /// Only now, so that no trigger fired and no module was called while rows were copied.
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

    /// SQLite writes new files in format 4.
    ///
    /// Format 1 has a switch, and a column added to a table raises it to 2 or 3. Indexes in descending order are
    /// sorted in ascending order below format 4, so a copy must not change it. Format and encoding are written with the
    /// first table, and stay when the last one is dropped.
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
        /// A b-tree of keys: an index, or a WITHOUT ROWID table.
        let isKeyed: Bool
    }

    /// Makes one b-tree for each entry, of the kind that the schema tells of.
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

    /// Whether a table is WITHOUT ROWID: its primary key is listed as an index, and has no b-tree of its own.
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
