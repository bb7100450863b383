internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// One run of a backfill.
struct Backfill: Sendable {
    let store: EncryptedStore
    let name: String
    let table: String
    let byRowID: Bool
    let batch: Int
    let body: @Sendable (Connection, [[Value]]) throws -> Void

    private struct Step: Sendable {
        /// The number of rows visited in this batch.
        let rows: Int
        /// The number of rows visited in all runs.
        let done: Int
        let isFinished: Bool
    }

    /// An error of the body, as distinct from errors of the batch around it.
    private struct BodyFailure: Error {
        let error: any Error
    }

    /// Runs one batch after another until the end of the table.
    ///
    /// - Returns: The number of rows visited.
    func run(_ progress: (@Sendable (BackfillProgress) -> Void)?) async throws -> Int {
        guard batch > 0, !name.isEmpty else {
            throw StoreError(
                .misuse, path: store.path, "the backfill has no name, or its batch size is less than 1",
                advice: "specify a name and a batch size of at least 1")
        }
        guard try await begin() else { return 0 }
        let total = progress == nil ? 0 : try await countRows()
        var visited = 0
        while true {
            try Task.checkCancellation()
            let step = try await runBatch()
            visited += step.rows
            progress?(BackfillProgress(done: step.done, total: max(total, step.done)))
            if step.isFinished { return visited }
        }
    }

    /// Prepares the run, and returns whether there is anything to do.
    private func begin() async throws -> Bool {
        try await store.write { [name, table] connection in
            if let entry = try BackfillTable.entry(name, connection) {
                if SQLName(entry.table) != SQLName(table) {
                    // A renamed table keeps its rowids and keys, so the checkpoint remains valid.
                    guard try !BackfillKeys.isThere(entry.table, connection) else {
                        throw StoreError(
                            .misuse, path: connection.path,
                            "the backfill \(name) was started on the table \(entry.table), not on \(table)",
                            advice: "choose another name")
                    }
                    _ = try BackfillKeys(table, byRowID: byRowID, connection)
                    try BackfillTable.move(name, to: table, connection)
                }
                if entry.isFinished { return false }
            }
            let keys = try BackfillKeys(table, byRowID: byRowID, connection)
            try BackfillTable.begin(name, table: table, keyColumns: keys.count, connection)
            return true
        }
    }

    private func countRows() async throws -> Int {
        try await store.read { [name, table, byRowID] connection in
            let done = try BackfillTable.entry(name, connection)?.done ?? 0
            return try done + BackfillKeys(table, byRowID: byRowID, connection).remaining(of: name, connection)
        }
    }

    private func runBatch() async throws -> Step {
        do {
            return try await store.write { try runBatch($0) }
        } catch let failure as BodyFailure {
            // The error's description is never stored, because it might quote a value.
            let cause = (failure.error as? DatabaseError).map { "SQLite code \($0.extendedCode)" }
            try await store.write { [name] connection in
                try BackfillTable.fail(name, cause ?? "\(type(of: failure.error))", connection)
            }
            throw failure.error
        }
    }

    private func runBatch(_ connection: Connection) throws -> Step {
        // The entry is read again for each batch, because another task or process may work on the same backfill.
        guard let entry = try BackfillTable.entry(name, connection), !entry.isFinished else {
            return Step(rows: 0, done: try BackfillTable.entry(name, connection)?.done ?? 0, isFinished: true)
        }
        let keys = try BackfillKeys(table, byRowID: byRowID, connection)
        let found = try keys.next(batch, of: name, connection)
        if !found.isEmpty {
            // The checkpoint moves before the body runs, because the body may delete the rows.
            try keys.moveCheckpoint(of: name, over: found.count, connection)
            do {
                try body(connection, found)
            } catch {
                throw BodyFailure(error: error)
            }
        }
        let isFinished = found.count < batch
        try BackfillTable.advance(name, by: found.count, isFinished: isFinished, connection)
        return Step(rows: found.count, done: entry.done + found.count, isFinished: isFinished)
    }
}
