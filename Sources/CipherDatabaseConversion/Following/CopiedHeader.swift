internal import CipherErrors
internal import CipherSQLite

/// The header fields of a database that a following copy must have in common with it.
enum CopiedHeader {
    /// The fields that each round copies.
    private static let fields = ["user_version", "application_id", "schema_version"]
    /// The fields that a copy adopts only when it is built anew.
    private static let layoutFields = ["auto_vacuum", "default_cache_size"]

    /// Sets the fields of the copy, `main`, to those of the attached database `original`.
    static func copy(_ writer: Connection) throws {
        for name in fields {
            let wanted = try writer.value(Int.self, SQL(text: "PRAGMA original.\(name)")) ?? 0
            guard try writer.value(Int.self, SQL(text: "PRAGMA main.\(name)")) != wanted else { continue }
            try writer.execute(SQL(text: "PRAGMA main.\(name) = \(String(wanted))"))
        }
    }

    /// Returns whether the copy, `main`, has the layout of the attached database `original`.
    static func hasLayout(_ writer: Connection) throws -> Bool {
        try layoutFields.allSatisfy { name in
            try writer.value(Int.self, SQL(text: "PRAGMA original.\(name)"))
                == writer.value(Int.self, SQL(text: "PRAGMA main.\(name)"))
        }
    }

    /// Compares all fields.
    ///
    /// Uses the proof's own connections.
    ///
    /// - Parameter path: The path of the database, used in the error.
    /// - Throws: ``StoreError`` with the code `proofFailed` if a field differs.
    static func compare(_ original: Connection, _ copy: Connection, of path: String) throws {
        for name in fields + layoutFields {
            let pragma = SQL(text: "PRAGMA \(name)")
            guard try original.value(Int.self, pragma) == copy.value(Int.self, pragma) else {
                throw StoreError.proof(path, "\(name) differs")
            }
        }
    }
}
