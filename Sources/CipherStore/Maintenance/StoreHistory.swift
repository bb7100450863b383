internal import CipherDatabaseConversion
internal import CipherErrors
public import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration

/// A database's history, with what the configuration wants.
public struct StoreHistory: Sendable, Encodable {
    /// The state of an item.
    ///
    /// A migration is one transaction, and a failed one leaves no trace in the database: only a backfill can have
    /// failed half-way.
    ///
    /// Source of the words: Flyway.
    public enum State: String, Sendable, Encodable {
        /// The configuration has it, and the database does not yet.
        case pending
        /// It was done.
        case applied
        /// Its version was reached, but the configuration no longer has it, or it was never applied.
        case missing
        /// The database has it, and it belongs to a version after the configuration's.
        case future
        /// It was begun, and ended with an error before it was done.
        case failed
    }

    /// Something that was or will be done to the database.
    public struct Item: Sendable, Encodable {
        /// What was or will be done.
        public enum Kind: String, Sendable, Encodable {
            /// Something that happened to the database.
            case event
            /// A step of the configuration's.
            case step
            /// Long data work.
            case backfill
            /// A version that the configuration wants, without steps of its own.
            case version
        }

        /// What was or will be done.
        public package(set) var kind: Kind
        /// Its state.
        public package(set) var state: State
        /// An event's name, a step's or a backfill's.
        public package(set) var name: String
        /// The version that it leads to, where it leads to one.
        public package(set) var version: SchemaVersion?
        /// What else the history tells of it.
        public package(set) var detail: String?
        /// When it was done: ISO 8601, in UTC.
        public package(set) var date: String?
    }

    /// The database, without symbolic links.
    public let path: String
    /// The version that counts; `nil` if none is recorded.
    public let version: SchemaVersion?
    /// Events from the oldest to the newest, then steps, the version that the configuration wants, and backfills.
    public let items: [Item]
}

extension StoreOpening {
    /// Reads the history and changes nothing.
    ///
    /// - Throws: ``StoreError`` where the file cannot be read.
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

    /// Lends a connection that only reads.
    func reading<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        let inspector = options.inspector(paths)
        return try resolver.resolve(inspector) { connection, facts, _ in
            guard facts.surface != .missing else { throw StoreError.missingFile(path) }
            // One moment's view, though another process writes meanwhile.
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
            detail: "\(done) rows of \(table)" + (failure.map { ", then \($0)" } ?? ""), date: updatedAt)
    }
}
