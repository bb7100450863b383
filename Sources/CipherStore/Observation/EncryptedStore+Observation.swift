internal import CipherErrors
public import CipherSQLite

extension EncryptedStore {
    /// The values of a closure that reads the database: the present one, and another after each commit that may change it.
    ///
    /// A value that equals the one before is left out. Which commits count is known from what the closure's statements read:
    /// those that changed the rows of such a table or a column of it that was read, also by a trigger, a foreign key, another
    /// store or another process, and every change of the schema. What the closure takes from elsewhere is not observed.
    ///
    /// - Parameter body: Reads, as in ``read(_:)``; it runs once for each value.
    public func observe<Output: Sendable & Equatable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) -> DatabaseObservation<Output> {
        DatabaseObservation(store: self, isSame: ==, body: body)
    }

    /// The values of a closure that reads the database: the present one, and another after each commit that may change it.
    ///
    /// Which commits count is known from what the closure's statements read: those that changed the rows of such a table or a
    /// column of it that was read, also by a trigger, a foreign key, another store or another process, and every change of the
    /// schema. What the closure takes from elsewhere is not observed.
    ///
    /// - Parameter body: Reads, as in ``read(_:)``; it runs once for each value.
    @_disfavoredOverload
    public func observe<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) -> DatabaseObservation<Output> {
        DatabaseObservation(store: self, isSame: { _, _ in false }, body: body)
    }

    /// The commits that touch some tables, from now on: one element stands for one commit or, if the task is slow, for
    /// several.
    ///
    /// Commits of other stores and processes count for all tables, and so does a change of the schema.
    public func changes(in tables: [String]) -> TableChanges { TableChanges(store: self, tables: tables) }

    // MARK: Reading what is observed

    /// Reads, and tells the signal which commits are of interest afterwards.
    ///
    /// - Returns: `nil` if the store is suspended; all observers are told when it is resumed.
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

    /// - Returns: Whether the tables were looked for; `false` if the store is suspended.
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
                advice: "name a table of the database")
        }
        return missing != nil
    }

    /// What `body` gives, unless this store is suspended; a closure may ask another one.
    private func unlessSuspended<Output>(_ body: () async throws -> Output) async throws -> Output? {
        do {
            return try await body()
        } catch let error as StoreError where error.code == .suspended && error.path == path {
            return nil
        }
    }
}

extension Connection {
    /// What must be observed to notice all that can change what was read.
    ///
    /// Column by column only where SQLite tells of each column: it does not tell of the columns that are computed from
    /// another, nor of rows that a table's own conflict clause removes. And a virtual table may read others.
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
