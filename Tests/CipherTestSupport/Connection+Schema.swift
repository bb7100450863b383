public import CipherSQLite

extension Connection {
    /// Edits the schema table as tools and old apps did, then makes SQLite read it again.
    public func editSchema(_ script: String) throws {
        try executeScript(text: "PRAGMA writable_schema = ON; \(script); PRAGMA writable_schema = OFF;")
        let version = try value(Int.self, "PRAGMA schema_version") ?? 0
        try execute(SQL(text: "PRAGMA schema_version = \(String(version + 1))"))
        // Old engines continue to use the schema that they have in memory.
        try forgetSchemas()
    }
}
