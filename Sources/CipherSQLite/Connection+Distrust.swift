internal import CCipherEngine
internal import CipherErrors

/// What a file that no one has vouched for may make its reader do.
extension Connection {
    /// Functions in the schema that are not innocuous may not run.
    ///
    /// Engines before SQLite 3.31 do not know the switch.
    package func distrustSchema() {
        _ = cs_config_trusted_schema(handle, 0)
    }

    /// Lets the schema run no function that is not innocuous, and nothing make a value that the file could not hold.
    ///
    /// A few bytes of schema can ask for gigabytes: `zeroblob(1000000000)` in a generated column or an index. What is
    /// stored is smaller than the file, so the bound is met by nothing that is stored, in the file or as computed from it.
    /// The corresponding C function is `sqlite3_limit`.
    ///
    /// - Parameter fileSize: The size of the file and of its log, in bytes.
    package func distrust(fileSize: Int64) {
        distrustSchema()
        let bound = min(max(fileSize, 2 << 20), Int64(Int32.max) / 8) * 8
        // Answers with the bound that was in force, and never raises it beyond the library's own.
        _ = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Int32(clamping: bound))
    }

    /// Runs `body` with values beyond a length refused, where a lower bound is not in force anyway.
    ///
    /// The corresponding C function is `sqlite3_limit`.
    ///
    /// - Parameter bytes: The greatest length, in bytes.
    /// - Throws: What `body` throws, and ``DatabaseError`` that ``DatabaseError/isTooBig`` where SQLite met a longer one.
    package func refusingValues<Result>(longerThan bytes: Int32, _ body: () throws -> Result) rethrows -> Result {
        let before = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, -1)
        _ = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, min(bytes, before))
        defer { _ = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, before) }
        return try body()
    }

    /// Runs `body` and ends it where it takes more steps of SQLite's virtual machine than an honest file needs.
    ///
    /// Pages that refer to each other make a small tree endless: SQLite notices a tree that is too deep, and not one whose
    /// branches all lead to the same leaves. Meanwhile no other progress handler is asked.
    ///
    /// - Throws: What `body` throws, and ``DatabaseError`` with `SQLITE_CORRUPT` if it was ended.
    package func withinSteps<Result>(_ steps: Int = 20_000_000, _ body: () throws -> Result) throws -> Result {
        guard let result = try finishing(within: steps, body) else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                message: "the work does not end: pages of the file refer to each other in a cycle",
                path: path)
        }
        return result
    }

    /// The same, with `nil` if it was ended.
    package func finishing<Result>(within steps: Int, _ body: () throws -> Result) throws -> Result? {
        let stride = Self.stride
        var left = steps / Int(stride)
        let outer = progressHandler
        setProgressHandler(every: stride) {
            left -= 1
            return left > 0
        }
        defer { setProgressHandler(outer) }
        do {
            return try body()
        } catch is DatabaseError where left <= 0 {
            return nil
        }
    }

    /// Reads the schema, which fails with `SQLITE_NOTADB` under a wrong key.
    ///
    /// Nothing is counted: to count, SQLite walks through a tree without asking anybody, however long that takes.
    package func proveReadable() throws {
        try withinSteps { try readSchema() }
    }

    /// The same of a schema that no one has vouched for: SQLite's time for it grows with the square of its entries.
    ///
    /// Returns `false` where there are more than `entries` of them.
    package func proveReadable(entries: Int) throws -> Bool {
        // SQLite takes five to seven steps for an entry, by its version. A stride more, for it is asked at whole ones.
        try finishing(within: 8 * entries + Int(Self.stride)) { try readSchema() } != nil
    }

    private static let stride: Int32 = 10_000

    private func readSchema() throws {
        do {
            try forEachRow("SELECT 1 FROM sqlite_master LIMIT 1") { _ in }
        } catch let error as DatabaseError where keyState == .given && error.isUnexplained {
            throw DatabaseError(extendedCode: SQLITE_NOTADB, message: error.message, sql: error.sql, path: path)
        }
        if keyState == .given { keyState = .used }
    }
}
