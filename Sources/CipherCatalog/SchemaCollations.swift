internal import CipherErrors
package import CipherSQLite

/// The collations that a schema sorts by.
package enum SchemaCollations {
    /// Those that indexes need and the connection does not have, sorted.
    ///
    /// By table, for the key of a WITHOUT ROWID table is an index that the schema does not list.
    package static func missing(_ connection: Connection) throws -> [String] {
        let namesCollation = try connection.value(
            Bool.self, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE sql LIKE '%collate%')")
        guard namesCollation == true else { return [] }
        var used: Set<SchemaName> = []
        for table in try connection.values(
            SchemaName.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        {
            var indexes: [SchemaName] = []
            try connection.forEachRow("PRAGMA index_list(\(table))") {
                indexes.append(try $0.get(at: 1))
            }
            for index in indexes {
                try connection.forEachRow("PRAGMA index_xinfo(\(index))") {
                    if let name = try $0.get(SchemaName?.self, at: 4) { used.insert(name) }
                }
            }
        }
        return try used.filter { try !isRegistered($0, connection) }.map(\.description).sorted()
    }

    /// `PRAGMA collation_list` would not tell: it lists every name that the schema uses once the schema is read.
    private static func isRegistered(_ name: SchemaName, _ connection: Connection) throws -> Bool {
        do {
            _ = try connection.value(Int.self, "SELECT '' = '' COLLATE \(name)")
            return true
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            return false
        }
    }
}
