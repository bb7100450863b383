import CipherSQLite

/// The columns of a table that are on disk.
struct TableColumns {
    /// The names of the columns whose values are stored, in order; generated ones only where they are STORED.
    let stored: [String]
    let hasPrimaryKey: Bool
    /// Whether there are generated columns, stored or not.
    let hasGenerated: Bool
    /// A name of the rowid that no column has taken.
    ///
    /// `nil` where columns have all three: nobody can ask for it then.
    let rowidAlias: String?
    // By byte: names that are equal as characters are two columns to SQLite.
    private let primaryKey: Set<[UInt8]>

    /// Whether the column is part of the primary key.
    func isPrimaryKey(_ column: String) -> Bool { primaryKey.contains(Array(column.utf8)) }

    init(_ table: String, schema: String, _ connection: Connection) throws {
        var stored: [String] = []
        var all: Set<SQLName> = []
        var primaryKey: Set<[UInt8]> = []
        var hasGenerated = false
        // Engines without generated columns do not know table_xinfo.
        let hasHidden = Engine.current.hasGeneratedColumns
        let pragma = hasHidden ? "table_xinfo" : "table_info"
        try connection.forEachRow(
            SQL(text: "PRAGMA \(SQL.quoted(identifier: schema)).\(pragma)(\(SQL.quoted(identifier: table)))")
        ) { row in
            let name = try row.get(String.self, at: 1)
            all.insert(SQLName(name))
            if try row.get(Int.self, at: 5) > 0 { primaryKey.insert(Array(name.utf8)) }
            // 2 is a generated column that is VIRTUAL, computed and not stored; 3 one that is STORED.
            let hidden = hasHidden ? try row.get(Int.self, at: 6) : 0
            if hidden >= 2 { hasGenerated = true }
            if hidden != 2 { stored.append(name) }
        }
        self.stored = stored
        self.hasGenerated = hasGenerated
        self.primaryKey = primaryKey
        hasPrimaryKey = !primaryKey.isEmpty
        rowidAlias = SQLName.ofRowID(besides: all)
    }
}
