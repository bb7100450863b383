internal import CipherDatabaseConversion
internal import CipherErrors
public import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration

/// A database's history, and what is pending in the configuration.
public struct StoreHistory: Sendable, Encodable {
    /// The state of an item.
    ///
    /// A migration is one transaction, and a failed one leaves no trace in the database, so only a backfill can have
    /// failed half-way.
    ///
    /// Source of the terms: Flyway.
    public enum State: String, Sendable, Encodable {
        /// The item is in the configuration, but it has not been applied to the database yet.
        case pending
        /// The item was applied.
        case applied
        /// The version of the item was reached, but the configuration no longer has the item, or it was never applied.
        case missing
        /// The item was applied to the database, and belongs to a version later than the configuration's.
        case future
        /// The item was started, but ended with an error before it was complete.
        case failed
    }

    /// Something that was or will be done to the database.
    public struct Item: Sendable, Encodable {
        /// What was or will be done.
        public enum Kind: String, Sendable, Encodable {
            /// An event in the database's history.
            case event
            /// A step of the configuration.
            case step
            /// A backfill.
            case backfill
            /// The version of the configuration, if no step leads to it.
            case version
        }

        /// What was or will be done.
        public package(set) var kind: Kind
        /// The state of the item.
        public package(set) var state: State
        /// The name of the event, step or backfill.
        public package(set) var name: String
        /// The version to which the item leads, if any.
        public package(set) var version: SchemaVersion?
        /// Further details from the history.
        public package(set) var detail: String?
        /// The date of the item: ISO 8601, in UTC.
        public package(set) var date: String?
    }

    /// The path of the database, with symbolic links resolved.
    public let path: String
    /// The recorded version; `nil` if there is none.
    public let version: SchemaVersion?
    /// The events from the oldest to the newest, then steps, the configuration's version, and backfills.
    public let items: [Item]
}

extension StoreOpening {
    /// Reads the history, without changing anything.
    ///
    /// - Throws: ``StoreError`` if the file cannot be read.
    package func history() throws -> StoreHistory {
        try reading { connection in
            let recorded = try resolver.recordedVersion(connection)
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

    /// Passes `body` a read-only connection.
    func reading<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        let inspector = options.inspector(paths)
        return try resolver.resolve(inspector) { connection, facts, _ in
            guard facts.surface != .missing else { throw StoreError.missingFile(path) }
            // A transaction provides a consistent snapshot even if another process writes meanwhile.
            return try connection.transaction(.deferred) { try body(connection) }
        }.result
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
            detail: "\(done) row\(done == 1 ? "" : "s") of \(table)"
                + (failure.map { "; the next batch failed: \($0)" } ?? ""),
            date: updatedAt)
    }
}
