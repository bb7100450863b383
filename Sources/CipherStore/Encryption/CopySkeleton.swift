import CipherSQLite

/// The empty b-trees of the copy under the original's schema, ready to be filled.
struct CopySkeleton {
    /// A table to be filled.
    struct Table {
        let name: String
        /// `sqlite_sequence`, which fills by itself while other tables are, and is copied last.
        let isSequence: Bool
        /// The quoted columns to name, rowid first, where whole records cannot be transferred.
        let namedColumns: [String]?
    }

    /// The tables in the order in which they are filled.
    private(set) var tables: [Table] = []
    /// Rows of the schema table whose text is put in at the end.
    private var provisional: [Int64] = []

    private struct Entry {
        let rowid: Int64
        let type: String
        let name: String
        let sourceRoot: Int64
    }

    /// Makes the b-trees and writes the schema's rows, with the rowids they have in the original.
    init(_ connection: Connection, source: DatabaseFile, header: FileHeader) throws {
        var entries: [Entry] = []
        try connection.forEachRow(
            "SELECT rowid, type, name, rootpage FROM legacy.sqlite_master WHERE rootpage > 0 ORDER BY rowid"
        ) { row in
            entries.append(
                Entry(
                    rowid: try row.get(at: 0), type: try row.get(at: 1), name: try row.get(at: 2),
                    sourceRoot: try row.get(at: 3)))
        }
        try connection.execute("BEGIN")
        try Self.setSchemaFormat(header.schemaFormat, connection)
        let roots = try Self.makeRoots(entries, connection, source: source, pageSize: header.pageSize)
        try connection.execute(
            """
            INSERT INTO main.sqlite_master(rowid, type, name, tbl_name, rootpage, sql)
            SELECT rowid, type, name, tbl_name, rootpage, sql FROM legacy.sqlite_master
            WHERE rootpage > 0 ORDER BY rowid
            """)
        for (entry, root) in zip(entries, roots) {
            try connection.execute("UPDATE main.sqlite_master SET rootpage = \(root.page) WHERE rowid = \(entry.rowid)")
            guard entry.type == "table" else { continue }
            let columns = root.isKeyed ? nil : try Self.columnsToName(entry.name, connection)
            if let columns {
                // The rowids of such a table survive only a copy by name, which checks NOT NULL and types. Rows that
                // break them exist in real files, so the table has neither while it is filled.
                let list = columns.dropFirst().joined(separator: ", ")
                let sql = "CREATE TABLE \(SQL.quoted(identifier: entry.name))(\(list))"
                try connection.execute("UPDATE main.sqlite_master SET sql = \(sql) WHERE rowid = \(entry.rowid)")
                provisional.append(entry.rowid)
            }
            tables.append(
                Table(name: entry.name, isSequence: entry.name == "sqlite_sequence", namedColumns: columns))
        }
        tables = tables.filter { !$0.isSequence } + tables.filter(\.isSequence)
        try connection.execute("COMMIT")
    }

    /// Adds what has no b-tree (views, triggers, virtual tables) and the schema text that was held back.
    ///
    /// Only now, so that no trigger fired and no module was called while rows were copied.
    func complete(_ connection: Connection) throws {
        for rowid in provisional {
            try connection.execute(
                """
                UPDATE main.sqlite_master
                SET sql = (SELECT sql FROM legacy.sqlite_master WHERE rowid = \(rowid)) WHERE rowid = \(rowid)
                """)
        }
        try connection.execute(
            """
            INSERT INTO main.sqlite_master(rowid, type, name, tbl_name, rootpage, sql)
            SELECT rowid, type, name, tbl_name, rootpage, sql FROM legacy.sqlite_master
            WHERE rootpage IS NULL OR rootpage <= 0 ORDER BY rowid
            """)
    }

    /// SQLite writes new files in format 4.
    ///
    /// Format 1 has a switch, and a column added to a table raises it to 2 or 3. Indexes in descending order are
    /// sorted in ascending order below format 4, so a copy must not change it.
    private static func setSchemaFormat(_ format: Int, _ connection: Connection) throws {
        guard format == 2 || format == 3 else { return }
        try connection.execute("CREATE TABLE main.cipherstore_format(a)")
        try connection.execute(
            SQL(text: "ALTER TABLE main.cipherstore_format ADD COLUMN b" + (format == 3 ? " DEFAULT 1" : "")))
        try connection.execute("DROP TABLE main.cipherstore_format")
    }

    private struct Root {
        let page: Int64
        /// A b-tree of keys: an index, or a WITHOUT ROWID table.
        let isKeyed: Bool
    }

    /// Makes one b-tree for each entry, of the kind that the original's root page has.
    ///
    /// The tables that make them are forgotten in batches: each CREATE TABLE reads the schema table through.
    private static func makeRoots(
        _ entries: [Entry], _ connection: Connection, source: DatabaseFile, pageSize: Int
    ) throws -> [Root] {
        var roots: [Root] = []
        roots.reserveCapacity(entries.count)
        for (number, entry) in entries.enumerated() {
            let offset = (entry.sourceRoot - 1) * Int64(pageSize)
            let isKeyed: Bool
            switch try source.read(at: offset, count: 1).first {
            case 0x0d, 0x05: isKeyed = false
            case 0x0a, 0x02: isKeyed = true
            default:
                throw StoreError(
                    .corrupt, path: connection.path, "the root page of \(entry.type) \(entry.name) is damaged",
                    advice: "restore the file from a backup; nothing was changed")
            }
            let columns = isKeyed ? "a PRIMARY KEY) WITHOUT ROWID" : "a)"
            try connection.execute(SQL(text: "CREATE TABLE main.cipherstore_root_\(number)(\(columns)"))
            roots.append(Root(page: 0, isKeyed: isKeyed))
            if (number + 1) % 200 == 0 || number == entries.count - 1 {
                try takeRoots(&roots, connection)
            }
        }
        return roots
    }

    private static func takeRoots(_ roots: inout [Root], _ connection: Connection) throws {
        let pages = try connection.values(Int64.self, "SELECT rootpage FROM main.sqlite_master ORDER BY rowid")
        for (index, page) in zip((roots.count - pages.count)..., pages) {
            roots[index] = Root(page: page, isKeyed: roots[index].isKeyed)
        }
        try connection.execute("DELETE FROM main.sqlite_master")
    }

    /// The columns to name for a table whose rowids a transfer of records would renumber: one with neither an INTEGER
    /// PRIMARY KEY nor an index.
    ///
    /// `nil` for others.
    private static func columnsToName(_ table: String, _ connection: Connection) throws -> [String]? {
        let name = SQL.quoted(identifier: table)
        guard try connection.value(Value.self, SQL(text: "PRAGMA legacy.index_list(\(name))")) == nil else {
            return nil
        }
        let columns = try TableColumns(table, schema: "legacy", connection)
        guard !columns.hasPrimaryKey, let rowid = columns.rowidAlias else { return nil }
        return [rowid] + columns.stored.map { SQL.quoted(identifier: $0) }
    }
}
