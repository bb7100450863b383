internal import CipherErrors
public import CipherHistory
public import CipherSQLite

/// The steps with which an app has changed its schema from version to version.
///
/// A new database gets the baseline and then every update; an older database gets the updates after its version, in
/// order.
public struct MigrationSteps: Sendable {
    /// The numbering of the updates' versions.
    public enum Numbering: Sendable, Equatable {
        /// The versions are 2, 3, 4 and so on up to the configuration's version, without gaps; the baseline creates
        /// version 1.
        case consecutive
        /// The versions are those of the app, only some of which changed the schema.
        case appVersions
    }

    /// The work of a step.
    public enum Work: Sendable {
        /// SQL texts, each with one or several statements.
        case sql([String])
        /// Swift code, which runs inside the migration's transaction and must not end it.
        case swift(@Sendable (Connection) throws -> Void)
    }

    /// A step that takes the schema to a version.
    public struct Update: Sendable {
        /// The version of the schema after the step.
        public var version: SchemaVersion
        /// The name in plans, in the history and in errors, such as `sql_update_3.plist`.
        public var name: String
        /// The work of the step.
        public var work: Work

        /// Creates a step to a version.
        public init(_ version: SchemaVersion, name: String? = nil, _ work: Work) {
            self.version = version
            self.name = name ?? "update \(version)"
            self.work = work
        }
    }

    /// The numbering of the updates' versions.
    public var numbering: Numbering
    /// The work that creates a new database, before all updates.
    public var baseline: Work
    /// The updates, in any order.
    public var updates: [Update]
    /// SQL that every launch runs, after the updates.
    public var everyLaunch: [String]
    /// The places, such as `sql_update_3.plist[1]`, of the statements that may run again if it is unknown whether they
    /// ran.
    public var repeatable: Set<String>
    /// The names that errors use for the baseline and for the work of every launch.
    package var names = (baseline: "baseline", everyLaunch: "every launch")
    /// The folder that the steps come from; `nil` for steps in Swift.
    package var directory: String?

    /// Creates steps that are written in Swift.
    public init(
        numbering: Numbering = .consecutive, baseline: Work, updates: [Update] = [], everyLaunch: [String] = [],
        repeatable: Set<String> = []
    ) {
        self.numbering = numbering
        self.baseline = baseline
        self.updates = updates
        self.everyLaunch = everyLaunch
        self.repeatable = repeatable
    }
}

extension MigrationSteps {
    /// The updates in the order of their versions.
    var ordered: [Update] { updates.sorted { $0.version < $1.version } }

    /// The names of the steps in plans and errors.
    package var stepNames: [String] { [names.baseline] + ordered.map(\.name) }

    /// The places of all statements.
    package var places: Set<String> {
        Set(
            ordered.flatMap { StepStage(name: $0.name, version: $0.version, work: $0.work).statements ?? [] }
                .map(\.place))
    }

    /// Checks that the updates lead to a version: no version occurs twice, none is beyond that version, and consecutive
    /// versions have no gaps.
    ///
    /// - Throws: ``StoreError`` with the code `configuration`, naming the step.
    package func check(leadingTo version: SchemaVersion) throws {
        let ordered = ordered
        for (first, second) in zip(ordered, ordered.dropFirst()) where first.version == second.version {
            throw failure(
                "\(first.name) and \(second.name) both lead to version \(first.version)",
                "keep one step for each version")
        }
        if let beyond = ordered.first(where: { $0.version > version }) {
            throw failure(
                "\(beyond.name) leads to version \(beyond.version), but the app's version is \(version)",
                "raise dbVersion, or remove the step")
        }
        guard numbering == .consecutive else { return }
        guard let last = version.wholeNumber else {
            throw failure(
                "the steps have consecutive numbers, but the app's version, \(version), is not a whole number",
                "name the steps after the app's versions, such as sql_update_1.10.0.plist")
        }
        if let first = ordered.first, first.version < 2 {
            throw failure(
                "\(first.name) would never run: the baseline creates version 1", "number the updates starting with 2")
        }
        for number in stride(from: 2, through: last, by: 1) {
            guard number - 2 < ordered.count, ordered[number - 2].version == SchemaVersion(number) else {
                let update = "the update to version \(number)"
                let name = directory == nil ? update : "sql_update_\(number).plist, \(update),"
                throw failure(
                    "\(name) is missing",
                    "add an update for every version from 2 to \(last)")
            }
        }
    }

    private func failure(_ detail: String, _ advice: String) -> StoreError {
        StoreError(.configuration, path: directory, detail, advice: advice, changed: .nothing)
    }
}
