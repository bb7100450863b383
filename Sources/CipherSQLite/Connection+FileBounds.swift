internal import CipherErrors
internal import CipherSystemFiles

extension Connection {
    /// Reads the schema.
    ///
    /// For a plaintext file the number of schema entries is limited, because an attacker may have written more of them
    /// than SQLite can read in a reasonable time.
    ///
    /// Each table or index has its own page, and a page has at least 512 bytes. A view, a trigger or a virtual table
    /// has no page and may be as short as 40 bytes. There may be 2,000 of these, and more if the file is large enough.
    ///
    /// - Parameter path: The path of the database; the sizes of its log and journal are added.
    /// - Throws: `DatabaseError` if the schema cannot be read, and ``StoreError`` with the code `corrupt` if it has
    ///   more entries.
    package func proveReadable(_ path: String, isPlaintext: Bool) throws {
        guard isPlaintext else { return try proveReadable() }
        let size = try Self.size(path) + (FileSystem.size(path + "-journal") ?? 0)
        let entries = Int(size / 512) + 2_000
        guard try proveReadable(entries: entries) else {
            throw StoreError(
                .corrupt, path: path,
                "the schema is cyclic, or has more entries (over \(entries)) than a file of this size can hold",
                advice: "drop unneeded views and triggers, or restore the file from a backup")
        }
    }

    /// Runs `body` and ends it if it takes more steps than walking through all rows of an undamaged file can need.
    ///
    /// Rows that the transaction has added are included, although they may not be in the file yet.
    ///
    /// - Throws: Any error thrown by `body`, and `DatabaseError` with `SQLITE_CORRUPT` if it was ended.
    package func withinStepsForRows<Result>(_ body: () throws -> Result) throws -> Result {
        try withinSteps(stepsForRows(contentSize()), body)
    }

    /// Runs `body` as ``withinStepsForRows(_:)`` does, and also ends it if it takes too much processor time.
    ///
    /// It computes what the schema of a foreign file says: the entries of indexes, generated columns and constraints.
    /// Without such expressions, SQLite's own checks take a hundredth of the time.
    ///
    /// - Throws: Any error thrown by `body`, and `DatabaseError` with `SQLITE_CORRUPT` or `SQLITE_TOOBIG` if it was
    ///   ended.
    package func computingBySchema<Result>(_ body: () throws -> Result) throws -> Result {
        let size = try contentSize()
        return try withinSteps(stepsForRows(size), seconds: 1 + 1e-6 * Double(size), body)
    }

    /// Passes `body` the rows of one of SQLite's own checks, which compute what the schema says.
    ///
    /// - Throws: As the other method of this name; the message of a check that took too long lists what to
    ///   look at.
    package func computingBySchema(_ check: SQL, _ body: (borrowing Row) throws -> Void) throws {
        do {
            try checking { try computingBySchema { try forEachRow(check, body) } }
        } catch let error as DatabaseError where error.isBeyondTime {
            // The check cannot tell which expression it was computing.
            let names = try values(SchemaName.self, Self.computedObjects).map { "\($0)" }
            guard !names.isEmpty else { throw error }
            throw DatabaseError(
                extendedCode: error.extendedCode, message: "\(error.message): check \(names.joined(separator: ", "))",
                path: path)
        }
    }

    /// Up to ten indexes and tables that seem to contain expressions.
    private static let computedObjects: SQL = """
        SELECT name FROM sqlite_master WHERE rootpage > 0
        AND (type = 'index' AND (sql LIKE '%(%(%' OR sql LIKE '%where%') OR type = 'table' AND sql LIKE '% as%(%')
        LIMIT 10
        """

    private func stepsForRows(_ size: Int64) -> Int { Int(size) * Self.stepsForByte + 20_000_000 }

    private func contentSize() throws -> Int64 { try max(Self.size(path), pagesSize()) }

    private func pagesSize() throws -> Int64 {
        try (value(Int64.self, "PRAGMA main.page_count") ?? 0) * pageSize(of: "main")
    }

    /// Returns the size of a file's pages in bytes.
    ///
    /// For an encrypted file, SQLCipher 4 handles the pragma instead of SQLite, and returns text.
    package func pageSize(of schema: String) throws -> Int64 {
        switch try value(Value.self, SQL(text: "PRAGMA \(schema).page_size")) {
        case .integer(let size): size
        case .text(let size): Int64(size) ?? 0
        default: 0
        }
    }

    /// The number of steps allowed for each byte: a row of three bytes may have 2,000 columns that were added later.
    package static let stepsForByte = 400

    /// Returns the size of a database and its log, in bytes.
    package static func size(_ path: String) throws -> Int64 {
        try (FileSystem.size(path) ?? 0) + (FileSystem.size(path + "-wal") ?? 0)
    }
}
