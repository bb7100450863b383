public import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

/// An event of a store, for an app's log.
///
/// ```swift
/// options.events = { event in logger.info("\(event)") }
/// ```
///
/// Contains no key, bound value or table content.
public struct StoreEvent: Sendable {
    /// The kind of event.
    public enum Kind: Sendable {
        /// Opening has begun.
        case opening
        /// A stage of an encryption upgrade, a decryption or a change of key has begun.
        case stage(UpgradeStage)
        /// The store is open; its warnings follow.
        case opened(OpenReport)
        /// The legacy database was encrypted while the store was open.
        case encrypted(EncryptionReport)
        /// The database cannot be encrypted now, because another process has it open or a read continues; the
        /// encryption is tried again soon.
        case encryptionPostponed(any Error)
        /// The database could not be encrypted, and the store continues with the plaintext file.
        case encryptionFailed(any Error)
        /// A warning of the report.
        case warning(String)
        /// The store could not be opened.
        case openingFailed(any Error)
        /// The log was written into the file, either completely or as far as other connections allow.
        case checkpointed(isWhole: Bool)
        /// The log could not be written into the file; after a commit, the next commit tries again.
        case checkpointFailed(any Error)
        /// A write waited at least a tenth of a second for another connection's lock, whether or not it got the lock.
        case waited(Duration)
        /// All connections were closed until the store is resumed.
        case suspended
        /// The store was resumed and accepts calls again.
        case resumed
        /// The store was closed.
        case closed
    }

    /// The path of the database file.
    public let database: String
    /// The kind of event.
    public let kind: Kind
}

extension StoreEvent: CustomStringConvertible {
    /// One line with the file and what happened.
    public var description: String { "\(SystemPath.printable(database)): \(text)" }

    private var text: String {
        switch kind {
        case .opening: "opening"
        case .stage(let stage): "upgrade: \(stage.rawValue)"
        case .opened(let report):
            "\(report.outcome.rawValue), version \(report.migration.from.map { "\($0) to " } ?? "")\(report.migration.to)"
        case .encrypted(let report):
            "the database (\(report.rows) row\(report.rows == 1 ? "" : "s")) was encrypted while it was open"
        case .encryptionPostponed(let error): "the database is not encrypted yet: \(error)"
        case .encryptionFailed(let error): "the database could not be encrypted and stays plaintext: \(error)"
        case .warning(let warning): "warning: \(warning)"
        case .openingFailed(let error): "the database could not be opened: \(error)"
        case .checkpointed(let isWhole): isWhole ? "checkpoint" : "partial checkpoint"
        case .checkpointFailed(let error): "checkpoint failed: \(error)"
        case .waited(let duration): "a write waited \(duration) for another connection"
        case .suspended: "suspended"
        case .resumed: "resumed"
        case .closed: "closed"
        }
    }
}

/// Reports a store's events to the app.
struct EventLog: Sendable {
    let database: String
    let tell: (@Sendable (StoreEvent) -> Void)?

    /// The shortest wait for a lock that is reported.
    static let noticeableWait = Duration.milliseconds(100)

    func callAsFunction(_ kind: @autoclosure () -> StoreEvent.Kind) {
        if let tell { tell(StoreEvent(database: database, kind: kind())) }
    }

    /// Reports an opening.
    func opening<Store>(_ open: () throws -> Store, report: (Store) -> OpenReport) throws -> Store {
        self(.opening)
        do {
            let store = try open()
            let report = report(store)
            self(.opened(report))
            for warning in report.warnings { self(.warning(warning)) }
            return store
        } catch {
            self(.openingFailed(error))
            throw error
        }
    }

    /// Returns a closure that reports the beginning of each stage and then calls `progress`.
    func progress(
        _ progress: (@Sendable (UpgradeProgress) -> Void)?
    ) -> (@Sendable (UpgradeProgress) -> Void)? {
        guard tell != nil else { return progress }
        let latest = LatestStage()
        return { update in
            if latest.isNew(update.stage) { self(.stage(update.stage)) }
            progress?(update)
        }
    }
}

private final class LatestStage: @unchecked Sendable {
    // Read and written only under `lock`.
    private var stage: UpgradeStage?
    private let lock = Lock()

    func isNew(_ stage: UpgradeStage) -> Bool {
        lock.withLock {
            defer { self.stage = stage }
            return self.stage != stage
        }
    }
}
