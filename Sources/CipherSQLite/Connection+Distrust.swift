internal import CCipherEngine
internal import CipherErrors

/// Limits on what an untrusted file can make its reader do.
extension Connection {
    /// Prevents functions in the schema from running unless they are innocuous.
    ///
    /// Engines before SQLite 3.31 do not have this setting.
    package func distrustSchema() {
        _ = cs_config_trusted_schema(handle, 0)
    }

    /// Prevents functions in the schema from running unless they are innocuous, and prevents values that the file could
    /// not hold.
    ///
    /// A few bytes of schema can request gigabytes: `zeroblob(1000000000)` in a generated column or an index. Stored
    /// values are smaller than the file, so no value that is stored in the file or computed from it reaches the limit.
    /// The corresponding C function is `sqlite3_limit`.
    ///
    /// - Parameter fileSize: The size of the file and of its log, in bytes.
    package func distrust(fileSize: Int64) {
        distrustSchema()
        let bound = min(max(fileSize, 2 << 20), Int64(Int32.max) / 8) * 8
        // The call returns the previous limit, and never raises it above the library's own.
        _ = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Int32(clamping: bound))
    }

    /// Runs `body` and refuses values beyond a length, unless a lower limit is already in effect.
    ///
    /// The corresponding C function is `sqlite3_limit`.
    ///
    /// - Parameter bytes: The maximum length, in bytes.
    /// - Throws: Any error thrown by `body`, and ``DatabaseError`` with ``DatabaseError/isTooBig`` if SQLite
    ///   encountered a longer value.
    package func refusingValues<Result>(longerThan bytes: Int32, _ body: () throws -> Result) rethrows -> Result {
        let before = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, -1)
        _ = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, min(bytes, before))
        defer { _ = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, before) }
        return try body()
    }

    /// Runs `body` and ends it if it takes more steps of SQLite's virtual machine than an undamaged file needs.
    ///
    /// Pages that refer to each other can make a small b-tree endless: SQLite detects a b-tree that is too deep, but
    /// not one whose branches all lead to the same leaves. While `body` runs, no other progress handler is called.
    ///
    /// - Throws: Any error thrown by `body`, and ``DatabaseError`` with `SQLITE_CORRUPT` if it was ended.
    package func withinSteps<Result>(_ steps: Int = 20_000_000, _ body: () throws -> Result) throws -> Result {
        guard let result = try finishing(within: steps, body) else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT, message: DatabaseError.beyondSteps, path: path)
        }
        return result
    }

    /// Runs `body` as ``withinSteps(_:_:)`` does, but returns `nil` if it was ended.
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

    /// Reads the schema, which fails with `SQLITE_NOTADB` if the key is wrong.
    ///
    /// It does not count anything, because SQLite counts by walking through a b-tree without calling the progress
    /// handler, however long that takes.
    package func proveReadable() throws {
        try withinSteps { try readSchema() }
    }

    /// Reads an untrusted schema, for which SQLite's running time grows with the square of the number of entries.
    ///
    /// - Returns: `false` if there are more than `entries` entries.
    package func proveReadable(entries: Int) throws -> Bool {
        // SQLite takes five to seven steps for an entry, depending on its version. One stride is added, because the
        // handler is called only after whole strides.
        try finishing(within: 8 * entries + Int(Self.stride)) { try readSchema() } != nil
    }

    private static let stride: Int32 = 10_000

    private func readSchema() throws {
        do {
            try forEachRow("SELECT 1 FROM sqlite_master LIMIT 1") { _ in }
        } catch let error as DatabaseError where keyState == .given && error.isNotAuthentic {
            throw DatabaseError(extendedCode: SQLITE_NOTADB, message: error.message, sql: error.sql, path: path)
        }
        if keyState == .given { keyState = .used }
    }
}
