public import CipherSQLite

/// The progress of a backfill.
public struct BackfillProgress: Sendable, Equatable {
    /// The number of rows visited, in this run and earlier ones.
    public let done: Int
    /// The number of rows that had been visited or remained to be visited when this run began.
    public let total: Int

    package init(done: Int, total: Int) {
        self.done = done
        self.total = total
    }
}

extension EncryptedStore {
    /// Visits every row of a table once, in batches, alongside the app's normal work.
    ///
    /// Use it for data work that takes too long for a schema migration.
    ///
    /// ```swift
    /// try await store.backfill("search text", of: "chat") { db, rowIDs in
    ///     for rowID in rowIDs {
    ///         try db.execute("UPDATE chat SET searchText = lower(body) WHERE rowid = \(rowID)")
    ///     }
    /// }
    /// ```
    ///
    /// Each batch is a transaction that includes its checkpoint, which is stored in the database. To resume a run that
    /// was killed, was canceled or failed, call this again, for instance at every launch; a finished backfill does
    /// nothing. Other reads and writes run between the batches.
    ///
    /// Rows are visited by ascending rowid. Of the rows that are inserted meanwhile, those after the checkpoint are
    /// visited too, and those before it are not. The app should therefore write new rows in their final form from
    /// before the backfill begins. VACUUM may change the rowids of a table without an INTEGER PRIMARY KEY; do not run
    /// it on such a table before the backfill has finished.
    ///
    /// If the table was renamed meanwhile, pass its new name. The backfill continues where it stopped, provided that no
    /// table has the earlier name any more.
    ///
    /// - Parameters:
    ///   - name: The name of the backfill. A name permanently identifies one backfill of one table.
    ///   - table: The table, which must have rowids.
    ///   - batch: The number of rows visited in each transaction.
    ///   - progress: A closure called after each batch. If it is not `nil`, the rows are counted once per run.
    ///   - body: A closure that does the work for the rows with these rowids, in the batch's transaction.
    /// - Returns: The number of rows that this run visited.
    /// - Throws: Any error thrown by `body`, after which the batch is rolled back and the backfill is marked as failed;
    ///   ``StoreError`` with the code `misuse` if the table has no rowids, is missing, or differs from the table of an
    ///   earlier run that still exists; otherwise the same errors as ``write(_:)``.
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

    /// Visits every row of a WITHOUT ROWID table once, in batches, as ``backfill(_:of:batch:progress:_:)`` does for
    /// other tables.
    ///
    /// Rows are visited by ascending primary key. A body that changes primary keys may move rows past the checkpoint,
    /// where they are visited again.
    ///
    /// The body receives the primary keys of the rows, each with its columns in the key's order.
    @discardableResult
    public func backfill(
        _ name: String, keysOf table: String, batch: Int = 500, progress: (@Sendable (BackfillProgress) -> Void)? = nil,
        _ body: @escaping @Sendable (_ db: Connection, _ keys: [[Value]]) throws -> Void
    ) async throws -> Int {
        try await Backfill(store: self, name: name, table: table, byRowID: false, batch: batch, body: body)
            .run(progress)
    }
}
