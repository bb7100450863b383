internal import CCipherEngine

extension Connection {
    /// Lends a connection to the same database whose changes stay in memory and are discarded afterwards.
    ///
    /// Neither the file nor any file beside it is written. This connection must be in a read transaction, which
    /// prevents changes to the file. In WAL mode, other connections can continue to write; if they commit during the
    /// rehearsal, `PRAGMA data_version` changes after the transaction has ended, and the result is then invalid.
    /// Source: SQLite, "Write-Ahead Logging", section 8: a log is used without shared memory in exclusive locking mode.
    ///
    /// - Parameters:
    ///   - limit: The number of bytes that may be changed.
    ///   - prepare: Prepares the connection before it reads, for example with the key.
    /// - Returns: The result of `body`; `nil` if it would change more than the limit.
    package func rehearsing<Result>(
        limit: Int, _ prepare: (Connection) throws -> Void, _ body: (Connection) throws -> Result
    ) throws -> Result? {
        let budget = OverlayBudget(limit)
        let database = openFile(SQLITE_FCNTL_FILE_POINTER)
        let log = openFile(SQLITE_FCNTL_JOURNAL_POINTER)
        let layer = try FileLayer(hasLog: log != nil) { flags in
            if flags & SQLITE_OPEN_MAIN_DB != 0 { return try OverlayFile(over: database, budget) }
            return try OverlayFile(over: flags & SQLITE_OPEN_WAL != 0 ? log : nil, budget)
        }
        let connection = try Connection(path: path, mode: .create, through: layer)
        defer {
            // Otherwise closing would copy the log into the database.
            budget.end()
            connection.close()
        }
        _ = try connection.value(String.self, "PRAGMA locking_mode = EXCLUSIVE")
        // These are the layer's own files, which are also in memory and count toward the limit.
        try connection.execute("PRAGMA temp_store = FILE")
        try prepare(connection)
        if log == nil { _ = try connection.value(String.self, "PRAGMA journal_mode = MEMORY") }
        try connection.execute("PRAGMA wal_autocheckpoint = 0")
        do {
            return try body(connection)
        } catch {
            guard budget.isExceeded else { throw error }
            return nil
        }
    }

    /// Returns SQLite's own structure for the database file, or for its journal or log; `nil` if it is not open.
    private func openFile(_ which: Int32) -> UnsafeMutablePointer<sqlite3_file>? {
        var file: UnsafeMutablePointer<sqlite3_file>?
        guard sqlite3_file_control(handle, "main", which, &file) == SQLITE_OK, let file, file.pointee.pMethods != nil
        else { return nil }
        return file
    }
}
