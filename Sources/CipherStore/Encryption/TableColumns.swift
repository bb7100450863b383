import CipherSQLite

/// The columns of a table that are on disk.
struct TableColumns {
    /// The names of the columns whose values are stored, in order; generated ones only where they are STORED.
    let stored: [String]
    let hasPrimaryKey: Bool
    /// A name of the rowid that no column has taken.
    ///
    /// `nil` where columns have all three: nobody can ask for it then.
    let rowidAlias: String?

    init(_ table: String, schema: String, _ connection: Connection) throws {
        var stored: [String] = []
        var all: Set<String> = []
        var hasPrimaryKey = false
        // Engines without generated columns do not know table_xinfo.
        let hasHidden = Engine.current.hasGeneratedColumns
        let pragma = hasHidden ? "table_xinfo" : "table_info"
        try connection.forEachRow(
            SQL(text: "PRAGMA \(SQL.quoted(identifier: schema)).\(pragma)(\(SQL.quoted(identifier: table)))")
        ) { row in
            let name = try row.get(String.self, at: 1)
            all.insert(name.lowercased())
            if try row.get(Int.self, at: 5) > 0 { hasPrimaryKey = true }
            // 2 is a generated column that is VIRTUAL: computed, not stored.
            if try !hasHidden || row.get(Int.self, at: 6) != 2 { stored.append(name) }
        }
        self.stored = stored
        self.hasPrimaryKey = hasPrimaryKey
        rowidAlias = ["rowid", "_rowid_", "oid"].first { !all.contains($0) }
    }
}
