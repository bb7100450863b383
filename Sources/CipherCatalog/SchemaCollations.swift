internal import CipherErrors
package import CipherSQLite

/// The collations by which a schema sorts.
package enum SchemaCollations {
    /// Returns the collations that indexes need and the connection lacks, sorted.
    ///
    /// The collations are read table by table, because the key of a WITHOUT ROWID table is an index that the schema
    /// does not list.
    package static func missing(_ connection: Connection) throws -> [String] {
        var namesCollation = false
        try connection.forEachRow("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL") { row in
            namesCollation = namesCollation || row.holds("collate", at: 0)
        }
        guard namesCollation else { return [] }
        var used: Set<SchemaName> = []
        for table in try connection.values(
            SchemaName.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        {
            for index in try IndexState.read(table: table, from: connection) {
                used.formUnion(try index.parts(connection).compactMap(\.collation))
            }
        }
        return try used.filter { try !isRegistered($0, connection) }.map(\.description).sorted()
    }

    /// Returns whether a collation is registered.
    ///
    /// `PRAGMA collation_list` does not show this: after the schema is read, it lists every name that the schema uses.
    private static func isRegistered(_ name: SchemaName, _ connection: Connection) throws -> Bool {
        do {
            _ = try connection.value(Int.self, "SELECT '' = '' COLLATE \(name)")
            return true
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            return false
        }
    }
}
