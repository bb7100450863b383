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
        try withinSteps(Int(max(Self.size(path), pagesSize())) * Self.stepsForByte + 20_000_000, body)
    }

    private func pagesSize() throws -> Int64 {
        let pages = try value(Int64.self, "PRAGMA main.page_count") ?? 0
        // For an encrypted file, SQLCipher 4 handles the pragma instead of SQLite, and returns text.
        switch try value(Value.self, "PRAGMA main.page_size") {
        case .integer(let size): return pages * size
        case .text(let size): return pages * (Int64(size) ?? 0)
        default: return 0
        }
    }

    /// The number of steps allowed for each byte: a row of three bytes may have 2,000 columns that were added later.
    package static let stepsForByte = 400

    /// Returns the size of a database and its log, in bytes.
    package static func size(_ path: String) throws -> Int64 {
        try (FileSystem.size(path) ?? 0) + (FileSystem.size(path + "-wal") ?? 0)
    }
}
