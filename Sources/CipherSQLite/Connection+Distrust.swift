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

    /// Prevents functions in the schema from running unless they are innocuous, and prevents values and programs that
    /// no row of the file needs.
    ///
    /// A few bytes of schema can request gigabytes: `zeroblob(1000000000)` in a generated column or an index, or
    /// generated columns that each use the one before twice. Stored values are smaller than the file, so no value that
    /// is stored in the file reaches the limit.
    /// The corresponding C function is `sqlite3_limit`.
    ///
    /// - Parameter fileSize: The size of the file and of its log, in bytes.
    package func distrust(fileSize: Int64) {
        distrustSchema()
        setValueLimit(fileSize + Self.spareLength)
        // In `integrity_check`, a table needs 100 to 200 instructions, and has at least one page.
        _ = sqlite3_limit(handle, SQLITE_LIMIT_VDBE_OP, Int32(clamping: 500_000 + fileSize / 4))
    }

    /// Forgets the modules of virtual tables, which SQLite's `integrity_check` then leaves out.
    ///
    /// Since SQLite 3.44, the check opens each virtual table, and one that cannot be opened, for lack of the app's tokenizer
    /// for example, prevents the check of everything else. Engines before SQLite 3.30 keep the modules.
    /// Source: SQLite, "Remove Unnecessary Virtual Table Implementations", and `pragma.c`.
    package func forgetModules() throws {
        cs_forget_modules(handle)
        // An open virtual table would still be checked.
        try forgetSchemas()
    }

    /// The number of bytes by which a value may be longer than the file; the library's own statements also need it.
    private static let spareLength: Int64 = 64 << 10

    /// Permits values of several times the file's size, for a statement of the caller's own.
    ///
    /// An aggregate may return all rows of a file as JSON, for example.
    package func allowLongResults() throws {
        setValueLimit(max(try Self.size(path), 512 << 10) * 8)
    }

    /// The call never raises the limit above the library's own.
    private func setValueLimit(_ bytes: Int64) {
        _ = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Int32(clamping: bytes))
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
    /// not one whose branches all lead to the same leaves.
    ///
    /// - Parameter seconds: The processor time that `body` may take, because a step may compute with long values.
    /// - Throws: Any error thrown by `body`, and ``DatabaseError`` with `SQLITE_CORRUPT` if it was ended, or with
    ///   `SQLITE_TOOBIG` if it took too much time.
    package func withinSteps<Result>(
        _ steps: Int = 20_000_000, seconds: Double = .infinity, _ body: () throws -> Result
    ) throws -> Result {
        let end = cs_processor_seconds() + seconds
        guard let result = try finishing(within: steps, until: end, body) else {
            let isLate = cs_processor_seconds() >= end
            throw DatabaseError(
                extendedCode: isLate ? SQLITE_TOOBIG : SQLITE_CORRUPT,
                message: isLate ? DatabaseError.beyondTime : DatabaseError.beyondSteps, path: path)
        }
        return result
    }

    /// Runs `body` as ``withinSteps(_:seconds:_:)`` does, but returns `nil` if it was ended.
    package func finishing<Result>(within steps: Int, _ body: () throws -> Result) throws -> Result? {
        try finishing(within: steps, until: .infinity, body)
    }

    private func finishing<Result>(
        within steps: Int, until end: Double, _ body: () throws -> Result
    ) throws -> Result? {
        let stride = Self.stride
        var left = steps / Int(stride)
        var isOver = false
        let outer = progressHandler
        setProgressHandler(every: stride) {
            left -= 1
            isOver = isOver || left <= 0 || end < .infinity && cs_processor_seconds() >= end
            return !isOver && outer?.mayContinue(after: Int(stride)) != false
        }
        defer { setProgressHandler(outer) }
        do {
            return try body()
        } catch is DatabaseError where isOver {
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
        // SQLite takes five to seven steps for an entry, depending on its version, and some for the statement.
        try finishing(within: 8 * entries + 10_000) { try readSchema() } != nil
    }

    /// The number of steps between two looks at the clock: a step with a value as long as the file may take a
    /// millisecond for each megabyte.
    private static let stride: Int32 = 1_000

    /// Throws if an encrypted file that is only read is empty, which every key opens, or if the content of the schema
    /// contradicts the number of reserved bytes in a readable header.
    ///
    /// Anyone can change that number. Of the cells and the free space on a page, whose lengths depend on it, SQLite's
    /// check demands that they fill the page exactly.
    /// Source: SQLite, "Database File Format", section 1.6.
    private func checkContent() throws {
        func refuse(_ message: String) throws -> Never {
            throw DatabaseError(extendedCode: SQLITE_CORRUPT, message: message, path: path)
        }
        guard try mayBeEmpty || value(Int64.self, "PRAGMA page_count") != 0 else { try refuse("the file is empty") }
        guard layers["main"]?.cipherPages?.isReservedSizeProven == false else { return }
        try forEachRow("PRAGMA quick_check(sqlite_master)") { row in
            guard try row.get(String.self, at: 0) == "ok" else {
                try refuse("the readable header states a wrong number of reserved bytes, or the schema is damaged")
            }
        }
        layers["main"]?.cipherPages?.isReservedSizeProven = true
    }

    /// Reads the schema, unless the connection knows it already, and page 1, without a limit on the steps.
    ///
    /// An encrypted file is read in one transaction, because the end of a transaction hides that its last page was not
    /// authentic; see ``checkAuthenticity()``.
    func readSchema() throws {
        func read() throws { try forEachRow("SELECT 1 FROM sqlite_master LIMIT 1") { _ in } }
        do {
            guard usesCipher, !isInTransaction else { return try read() }
            try execute("BEGIN")
            defer { rollBack() }
            // This statement, which reads only page 1, starts the transaction. Otherwise, SQLite would read the schema in
            // a separate transaction.
            _ = try value(Int.self, "PRAGMA user_version")
            try checkContent()
            // The key has opened page 1, so another page that it does not open is damaged.
            if keyState == .given, !hasReadableHeader { keyState = .used }
            try read()
            try read()
        } catch let error as DatabaseError where keyState == .given && error.isNotAuthentic {
            throw DatabaseError(extendedCode: SQLITE_NOTADB, message: error.message, sql: error.sql, path: path)
        }
        if keyState == .given { keyState = .used }
    }
}
