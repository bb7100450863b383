public import CipherSQLite

/// The progress of a backfill.
public struct BackfillProgress: Sendable, Equatable {
    /// Rows that were visited, in this run and earlier ones.
    public let done: Int
    /// Rows that were visited or were still to be visited when this run began.
    public let total: Int

    package init(done: Int, total: Int) {
        self.done = done
        self.total = total
    }
}

extension EncryptedStore {
    /// Visits every row of a table once, in batches, beside the app's normal work: for data work that takes too long for
    /// a schema migration.
    ///
    /// ```swift
    /// try await store.backfill("search text", of: "chat") { db, rowIDs in
    ///     for rowID in rowIDs {
    ///         try db.execute("UPDATE chat SET searchText = lower(body) WHERE rowid = \(rowID)")
    ///     }
    /// }
    /// ```
    ///
    /// Each batch is its own transaction together with its checkpoint, which is kept in the database. A run that was
    /// killed, cancelled or failed is resumed by calling this again, for instance at every launch; a backfill that has
    /// finished does nothing. Other reads and writes come in between the batches.
    ///
    /// Rows are visited by ascending rowid. Of rows that are inserted meanwhile, those behind the place that was reached
    /// are visited too, and those before it are not: let the app write new rows complete before it begins. A table without
    /// an INTEGER PRIMARY KEY may get other rowids by VACUUM; do not run it on such a table before the backfill has
    /// finished.
    ///
    /// A table that was renamed meanwhile is given by its new name, and the backfill continues where it was: it follows
    /// once there is no table of the earlier name.
    ///
    /// - Parameters:
    ///   - name: The backfill's own name; one name stands for one piece of work on one table, permanently.
    ///   - table: The table, which has rowids.
    ///   - batch: How many rows are visited in a transaction.
    ///   - progress: Called after each batch; it costs one count of the rows for each run.
    ///   - body: Does the work for the rows with these rowids, in the batch's transaction.
    /// - Returns: How many rows this run visited.
    /// - Throws: What `body` throws, after which the batch is undone and the backfill marked as failed; ``StoreError``
    ///   with `misuse` if the table has no rowids, is missing, or is another than that of an earlier run, which is
    ///   still there; as ``write(_:)``.
    @discardableResult
    public func backfill(
        _ name: String, of table: String, batch: Int = 500, progress: (@Sendable (BackfillProgress) -> Void)? = nil,
        _ body: @escaping @Sendable (_ db: Connection, _ rowIDs: [Int64]) throws -> Void
    ) async throws -> Int {
        try await Backfill(store: self, name: name, table: table, byRowID: true, batch: batch) { connection, keys in
            try body(
                connection,
                keys.compactMap { key in
                    if case .integer(let rowID) = key[0] { rowID } else { nil }
                })
        }.run(progress)
    }

    /// Visits every row of a WITHOUT ROWID table once, in batches, as
    /// ``backfill(_:of:batch:progress:_:)`` does for other tables.
    ///
    /// Rows are visited by ascending primary key. A body that changes the primary key may move rows behind the place that
    /// was reached, where they are visited again.
    ///
    /// The body is given the primary keys of the rows, each with its columns in the key's order.
    @discardableResult
    public func backfill(
        _ name: String, keysOf table: String, batch: Int = 500, progress: (@Sendable (BackfillProgress) -> Void)? = nil,
        _ body: @escaping @Sendable (_ db: Connection, _ keys: [[Value]]) throws -> Void
    ) async throws -> Int {
        try await Backfill(store: self, name: name, table: table, byRowID: false, batch: batch, body: body)
            .run(progress)
    }
}
