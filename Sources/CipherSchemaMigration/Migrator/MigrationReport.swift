public import CipherHistory

/// A report on a schema migration.
public struct MigrationReport: Sendable, Equatable {
    /// The version before the migration: 0 for a new database, and `nil` if a database has no recorded version.
    public var from: SchemaVersion?
    /// The version after the migration.
    public var to: SchemaVersion
    /// The event that the history records for this migration; `nil` if there was nothing to do, or if only a record of
    /// the version was corrected.
    public var event: HistoryEvent?
    /// The operations that were applied, in order.
    public var applied: [Plan.Operation]
    /// The changes that the schema requires but that were not made, with the reasons.
    ///
    /// Rows are counted only if something was applied, because a launch without a migration should not read whole
    /// tables.
    public var withheld: [Plan.Withheld]
    /// The consequences of the operations for the values in the database.
    public var findings: [Plan.Finding]
    /// Further notes for the caller.
    public var notes: [String]

    /// Creates a report from the given parts.
    package init(
        from: SchemaVersion?, to: SchemaVersion, event: HistoryEvent? = nil, applied: [Plan.Operation] = [],
        withheld: [Plan.Withheld] = [], findings: [Plan.Finding] = [], notes: [String] = []
    ) {
        self.from = from
        self.to = to
        self.event = event
        self.applied = applied
        self.withheld = withheld
        self.findings = findings
        self.notes = notes
    }

    init(_ plan: Plan, event: HistoryEvent?) {
        self.init(
            from: event == .created ? .zero : plan.from, to: plan.to, event: event,
            applied: plan.operations + plan.everyLaunch, withheld: plan.withheld, findings: plan.findings,
            notes: plan.notes)
    }

    /// The warnings that an app must not overlook.
    package var warnings: [String] { findings.warnings }

    /// The kind of this launch.
    public var launch: LaunchKind {
        if event == .created { return .firstInstall }
        return isUpdate ? .upgrade(from: from, to: to) : .unchanged
    }

    /// Whether this launch updated an older database to the current version; `false` for a fresh install.
    public var isUpdate: Bool {
        event != nil && event != .created && from != to
    }
}

extension MigrationReport: Codable {
    private enum CodingKeys: String, CodingKey { case from, to, event, launch, applied, withheld, findings, notes }

    /// Decodes a report that was encoded by ``encode(to:)``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let text = try container.decodeIfPresent(String.self, forKey: .from)
        from = text.flatMap { SchemaVersion($0) }
        if let text, from == nil {
            throw DecodingError.dataCorruptedError(
                forKey: .from, in: container, debugDescription: "\(text) is not a valid version")
        }
        to = try container.decode(SchemaVersion.self, forKey: .to)
        event = try container.decodeIfPresent(HistoryEvent.self, forKey: .event)
        applied = try container.decode([Plan.Operation].self, forKey: .applied)
        withheld = try container.decode([Plan.Withheld].self, forKey: .withheld)
        findings = try container.decodeIfPresent([Plan.Finding].self, forKey: .findings) ?? []
        notes = try container.decode([String].self, forKey: .notes)
    }

    /// Encodes the report for machine output: `from` is the version's text or null, `launch` the name of its kind.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(from?.description, forKey: .from)
        try container.encode(to, forKey: .to)
        try container.encode(event, forKey: .event)
        try container.encode(launch.name, forKey: .launch)
        try container.encode(applied, forKey: .applied)
        try container.encode(withheld, forKey: .withheld)
        try container.encode(findings, forKey: .findings)
        try container.encode(notes, forKey: .notes)
    }
}
