import CipherSQLite

/// The collations that a schema sorts by.
enum SchemaCollations {
    /// Those that indexes need and the connection does not have, sorted.
    ///
    /// By table, for the key of a WITHOUT ROWID table is an index that the schema does not list.
    static func missing(_ connection: Connection) throws -> [String] {
        let namesCollation = try connection.value(
            Bool.self, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE sql LIKE '%collate%')")
        guard namesCollation == true else { return [] }
        var used: Set<String> = []
        for table in try connection.values(
            String.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        {
            var indexes: [String] = []
            try connection.forEachRow(SQL(text: "PRAGMA index_list(\(SQL.quoted(identifier: table)))")) {
                indexes.append(try $0.get(at: 1))
            }
            for index in indexes {
                try connection.forEachRow(SQL(text: "PRAGMA index_xinfo(\(SQL.quoted(identifier: index)))")) {
                    if let name = try $0.get(String?.self, at: 4) { used.insert(name) }
                }
            }
        }
        return try used.filter { try !isRegistered($0, connection) }.sorted()
    }

    /// `PRAGMA collation_list` would not tell: it lists every name that the schema uses once the schema is read.
    private static func isRegistered(_ name: String, _ connection: Connection) throws -> Bool {
        do {
            _ = try connection.value(Int.self, SQL(text: "SELECT '' = '' COLLATE \(SQL.quoted(identifier: name))"))
            return true
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            return false
        }
    }
}
