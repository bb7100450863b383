internal import CipherErrors
public import CipherSQLite

extension EncryptedStore {
    /// Returns the values of a closure that reads the database: the present value, and a new value after each commit
    /// that may change it.
    ///
    /// A value that equals the previous one is skipped. The statements of the closure determine which commits are
    /// relevant: every change to the rows of a table that was read, or to a column that was read, even if made by a
    /// trigger, a foreign key, another store or another process; and every change to the schema. Anything else that the
    /// closure reads is not observed.
    ///
    /// - Parameter body: A closure that reads, as in ``read(_:)``; it runs once for each value.
    public func observe<Output: Sendable & Equatable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) -> DatabaseObservation<Output> {
        DatabaseObservation(store: self, isSame: ==, body: body)
    }

    /// Returns the values of a closure that reads the database: the present value, and a new value after each commit
    /// that may change it.
    ///
    /// The statements of the closure determine which commits are relevant: every change to the rows of a table that was
    /// read, or to a column that was read, even if made by a trigger, a foreign key, another store or another process;
    /// and every change to the schema. Anything else that the closure reads is not observed.
    ///
    /// - Parameter body: A closure that reads, as in ``read(_:)``; it runs once for each value.
    @_disfavoredOverload
    public func observe<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) -> DatabaseObservation<Output> {
        DatabaseObservation(store: self, isSame: { _, _ in false }, body: body)
    }

    /// Returns the future commits that touch any of the specified tables.
    ///
    /// Each element stands for one commit or, if the task is slow, for several.
    ///
    /// Commits of other stores and processes are treated as touching all tables, and so is every change to the schema.
    public func changes(in tables: [String]) -> TableChanges { TableChanges(store: self, tables: tables) }

    // MARK: Reading what is observed

    /// Reads a value, and passes the signal the region of the commits that are relevant afterwards.
    ///
    /// - Returns: The value; `nil` if the store is suspended, in which case all observers are notified when it is
    ///   resumed.
    func read<Output: Sendable>(
        telling changes: ChangeSignal, _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output? {
        watchFiles()
        changes.beginReading()
        var region = TableAccess.everything
        defer { changes.endReading(region) }
        return try await unlessSuspended {
            let (value, reads) = try await read { connection in
                let (value, reads) = try connection.recordingReads { try body(connection) }
                return (value, try connection.observable(reads))
            }
            region = reads
            return value
        }
    }

    /// - Returns: Whether the tables were checked; `false` if the store is suspended.
    func checkTables(_ tables: [String]) async throws -> Bool {
        watchFiles()
        let missing = try await unlessSuspended {
            try await read { db in
                try tables.first { table in
                    try db.value(
                        Bool.self,
                        """
                        SELECT NOT EXISTS (
                            SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = \(table) COLLATE NOCASE)
                        """
                    ) ?? true
                }
            }
        }
        if case .some(let table?) = missing {
            throw StoreError(
                .misuse, path: path, "there is no table \(table) to observe",
                advice: "check the table's name")
        }
        return missing != nil
    }

    /// Returns the result of `body`; `nil` if this store is suspended.
    ///
    /// The path is compared because a closure may call another store.
    private func unlessSuspended<Output>(_ body: () async throws -> Output) async throws -> Output? {
        do {
            return try await body()
        } catch let error as StoreError where error.code == .suspended && error.path == path {
            return nil
        }
    }
}

extension Connection {
    /// Returns the region to observe so that no change to what was read goes unnoticed.
    ///
    /// Tables are observed column by column only if SQLite reports every changed column. SQLite does not report columns
    /// that are computed from others, or rows that a table's own conflict clause removes. A virtual table may also read
    /// other tables.
    fileprivate func observable(_ reads: TableAccess) throws -> TableAccess {
        guard !reads.isEverything, !reads.tables.isEmpty else { return reads }
        guard !reads.tables.keys.contains(where: { $0.unicodeScalars.contains("\u{fffd}") }) else { return .everything }
        var region = reads
        try forEachRow(
            """
            SELECT name, rootpage, sql FROM main.sqlite_master
            WHERE type = 'table' AND name COLLATE NOCASE IN (\(list: reads.tables.keys.sorted()))
            """
        ) { row in
            if try row.get(Int?.self, at: 1) ?? 0 == 0 { region.isEverything = true }
            let isPlain = row.withBytes(at: 2) { sql in
                !["replace", "generated", "as"].contains { sql.containsWord($0) }
            }
            if !isPlain { region.add(try row.get(at: 0), .all) }
        }
        return region
    }
}
