internal import CipherDatabaseConversion
internal import CipherErrors
package import CipherHistory
package import CipherSQLite
internal import CipherSchemaMigration

/// What a database's history tells, beside what the configuration wants.
package struct StoreHistory: Sendable, Encodable {
    /// How an item stands.
    ///
    /// A migration is one transaction, and where it fails the database keeps no trace of it, not even a mark: only the
    /// work of a backfill can have failed half-way.
    ///
    /// Source of the words: Flyway.
    package enum State: String, Sendable, Encodable {
        /// The configuration knows it and the database does not have it yet.
        case pending
        /// It was done.
        case applied
        /// Its version was reached, but the configuration no longer knows it, or it was never applied.
        case missing
        /// The database has it, and it belongs to a version after the configuration's.
        case future
        /// It was begun, and ended with an error before it was done.
        case failed
    }

    /// Something that was or will be done to the database.
    package struct Item: Sendable, Encodable {
        package enum Kind: String, Sendable, Encodable { case event, step, backfill, version }

        package var kind: Kind
        package var state: State
        /// An event's name, a step's or a backfill's.
        package var name: String
        package var version: SchemaVersion?
        package var detail: String?
        /// ISO 8601, in UTC.
        package var date: String?
    }

    /// The database, without symbolic links.
    package let path: String
    /// The version that counts; `nil` where none is recorded.
    package let version: SchemaVersion?
    /// Events from the oldest to the newest, then steps, the version that the configuration wants, and backfills.
    package let items: [Item]
}

extension StoreOpening {
    /// Reads the history and changes nothing.
    ///
    /// - Parameter key: Gives the key; asked only where the file is encrypted.
    /// - Throws: ``StoreError`` where the file cannot be read.
    package func history(key: () throws -> CipherKey) throws -> StoreHistory {
        try reading(key) { connection in
            let recorded = try recordedVersion(connection)
            let steps = try stepItems(connection, recorded)
            let isPending = !steps.contains { $0.state == .pending } && recorded ?? .zero < configuration.version
            let version = StoreHistory.Item(
                kind: .version, state: .pending, name: "schema", version: configuration.version)
            return StoreHistory(
                path: path, version: recorded,
                items: try eventItems(connection) + steps + (isPending ? [version] : [])
                    + BackfillTable.entries(connection).map(\.historyItem))
        }
    }

    private func eventItems(_ connection: Connection) throws -> [StoreHistory.Item] {
        try HistoryTable.latestEvents(connection, limit: 1_000).reversed().map { entry in
            let isFuture = entry.version ?? .zero > configuration.version
            return StoreHistory.Item(
                kind: .event, state: isFuture ? .future : .applied, name: entry.event, version: entry.version,
                detail: entry.detail, date: entry.appliedAt)
        }
    }

    private func stepItems(_ connection: Connection, _ recorded: SchemaVersion?) throws -> [StoreHistory.Item] {
        let known = try configuration.schemaSource.recordedSteps
        let applied = try SchemaRecord.latest(connection)?.record.steps
        func state(of step: SchemaStep) -> StoreHistory.State {
            guard step.version <= recorded ?? .zero else { return .pending }
            return applied?.contains { $0.version == step.version } == false ? .missing : .applied
        }
        let gone = (applied ?? []).filter { step in !known.contains { $0.version == step.version } }
        let items =
            known.map { ($0, state(of: $0)) }
            + gone.map { ($0, $0.version > configuration.version ? .future : .missing) }
        return items.sorted { $0.0.version < $1.0.version }.map { step, state in
            StoreHistory.Item(kind: .step, state: state, name: step.name, version: step.version)
        }
    }

    /// Lends a connection that only reads.
    func reading<Result>(_ key: () throws -> CipherKey, _ body: (Connection) throws -> Result) throws -> Result {
        let reader = DatabaseReader(Inspector(paths, collations: configuration.collations))
        do {
            return try reader.read(formats: configuration.encryption.formats, key: key) { connection, _ in
                // One moment's view, though another process writes meanwhile.
                try connection.transaction(.deferred) { try body(connection) }
            }
        } catch let error as DatabaseError {
            throw reader.failure(error)
        }
    }
}

extension HistoryEntry {
    /// The version that the event recorded.
    package var version: SchemaVersion? { toVersion.flatMap { SchemaVersion($0) } }
}

extension BackfillTable.Entry {
    /// The backfill as an item of the history.
    var historyItem: StoreHistory.Item {
        StoreHistory.Item(
            kind: .backfill, state: isFinished ? .applied : failure == nil ? .pending : .failed, name: name,
            detail: "\(done) rows of \(table)" + (failure.map { ", then \($0)" } ?? ""), date: updatedAt)
    }
}
