extension Connection {
    /// Runs `body`, which is part of a write transaction, and lets SQLite sort in encrypted files without a name.
    ///
    /// Such a file is needed to create an index that is larger than the memory. The setting changes after the transaction
    /// has begun to write, so that the journals of its statements and savepoints stay in memory: SQLCipher cannot always
    /// read page 1 from such a journal in a file (docs/RELIABILITY.md). SQLite refuses the change while there are
    /// temporary tables, which it would drop, and its own file layer would write plaintext; sorters then stay in memory.
    /// Source: SQLite, `sqlite3PagerBegin` and "PRAGMA temp_store".
    package func sortingInFiles<Result>(_ body: () throws -> Result) throws -> Result {
        let inMemory = 2
        guard isInTransaction, layers["main"] != nil, try value(Int.self, "PRAGMA temp_store") == inMemory,
            try !hasTemporaryDatabase()
        else { return try body() }
        try execute("PRAGMA temp_store = FILE")
        let result: Result
        do {
            result = try body()
        } catch {
            try? sortInMemory()
            throw error
        }
        try sortInMemory()
        return result
    }

    private func sortInMemory() throws {
        if try !hasTemporaryDatabase() { try execute("PRAGMA temp_store = MEMORY") }
    }

    /// Returns whether there are, or were, temporary tables.
    private func hasTemporaryDatabase() throws -> Bool {
        var isOpen = false
        try forEachRow("PRAGMA database_list") { if try $0.get(String.self, at: 1) == "temp" { isOpen = true } }
        return isOpen
    }
}
