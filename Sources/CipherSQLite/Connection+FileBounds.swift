internal import CipherErrors
internal import CipherSystemFiles

extension Connection {
    /// Reads the schema, of a plaintext file within bounds: anybody may have written more into it than SQLite can read in
    /// time.
    ///
    /// A table or an index has a page of its own, and no page is smaller than 512 bytes. A view, a trigger or a virtual
    /// table has none and may be as short as forty: of these there may be 2,000, and more where the file has the room.
    ///
    /// - Parameter path: The database, whose log and journal count too.
    /// - Throws: `DatabaseError` if it cannot be read, and ``StoreError`` with `corrupt` where there are more entries.
    package func proveReadable(_ path: String, isPlaintext: Bool) throws {
        guard isPlaintext else { return try proveReadable() }
        let size = try Self.size(path) + (FileSystem.size(path + "-journal") ?? 0)
        let entries = Int(size / 512) + 2_000
        guard try proveReadable(entries: entries) else {
            throw StoreError(
                .corrupt, path: path,
                "its schema has more than \(entries) entries, which would need a larger file, or it is cyclic",
                advice: "drop unneeded views and triggers, or restore the file from a backup")
        }
    }

    /// Runs `body` and ends it where it takes more steps than any number of walks through the rows of an honest file.
    ///
    /// What a transaction has added counts too, which may not be in the file yet.
    ///
    /// - Throws: What `body` throws, and `DatabaseError` with `SQLITE_CORRUPT` if it was ended.
    package func withinStepsForRows<Result>(_ body: () throws -> Result) throws -> Result {
        try withinSteps(Int(max(Self.size(path), pagesSize())) * Self.stepsForByte + 20_000_000, body)
    }

    private func pagesSize() throws -> Int64 {
        let pages = try value(Int64.self, "PRAGMA main.page_count") ?? 0
        // SQLCipher 4 answers for SQLite where the file is encrypted, and with text.
        switch try value(Value.self, "PRAGMA main.page_size") {
        case .integer(let size): return pages * size
        case .text(let size): return pages * (Int64(size) ?? 0)
        default: return 0
        }
    }

    /// A row of three bytes may have 2,000 columns that were added later.
    package static let stepsForByte = 400

    /// The size of a database with its log, in bytes.
    package static func size(_ path: String) throws -> Int64 {
        try (FileSystem.size(path) ?? 0) + (FileSystem.size(path + "-wal") ?? 0)
    }
}
