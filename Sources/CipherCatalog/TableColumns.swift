internal import CipherSQLText
package import CipherSQLite

/// The columns of a table that are on disk.
package struct TableColumns {
    /// A column whose value is stored.
    package struct Stored {
        package let name: SchemaName
        /// Its place among all columns of the table, from 0.
        package let position: Int
        package let isPrimaryKey: Bool
        package let isNotNull: Bool
    }

    /// The columns whose values are stored, in order; generated ones only where they are STORED.
    package let stored: [Stored]
    /// How many columns the table has, stored or not.
    package let count: Int
    package let hasPrimaryKey: Bool
    /// Whether there are generated columns, stored or not.
    package let hasGenerated: Bool
    /// A name of the rowid that no column has taken.
    ///
    /// `nil` where columns have all three: nobody can ask for it then.
    package let rowidAlias: String?

    package init(_ table: SchemaName, schema: StaticString, _ connection: Connection) throws {
        var stored: [Stored] = []
        var all: Set<SQLName> = []
        var count = 0
        var hasGenerated = false
        var hasPrimaryKey = false
        // Engines without generated columns do not know table_xinfo.
        let hasHidden = Engine.current.hasGeneratedColumns
        let pragma = SQL(text: "PRAGMA \(schema).\(hasHidden ? "table_xinfo" : "table_info")")
        try connection.forEachRow("\(pragma)(\(table))") { row in
            let name = try row.get(SchemaName.self, at: 1)
            all.insert(SQLName(of: name))
            let isPrimaryKey = try row.get(Int.self, at: 5) > 0
            // 2 is a generated column that is VIRTUAL, computed and not stored; 3 one that is STORED.
            let hidden = hasHidden ? try row.get(Int.self, at: 6) : 0
            if isPrimaryKey { hasPrimaryKey = true }
            if hidden >= 2 { hasGenerated = true }
            if hidden != 2 {
                stored.append(
                    Stored(
                        name: name, position: count, isPrimaryKey: isPrimaryKey,
                        isNotNull: try row.get(Int.self, at: 3) != 0))
            }
            count += 1
        }
        self.stored = stored
        self.count = count
        self.hasGenerated = hasGenerated
        self.hasPrimaryKey = hasPrimaryKey
        rowidAlias = SQLName.ofRowID(besides: all)
    }
}
