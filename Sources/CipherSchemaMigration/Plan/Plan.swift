public import CipherHistory
internal import CipherSQLText

/// What a schema migration would do to a database: every operation with its SQL, reason and risk.
///
/// A plan is made without side effects, so it can be printed, judged and refused before anything is changed.
public struct Plan: Sendable, Equatable {
    /// The version that the database has; `nil` if none is recorded.
    public var from: SchemaVersion?
    /// The version that the configuration wants.
    public var to: SchemaVersion
    /// A checksum that tells one wanted schema from another.
    ///
    /// The history keeps it, so that a later reader sees which schema was applied. It guards against mistakes, not
    /// against forgery.
    package var fingerprint: String
    /// What is done, in order.
    public var operations: [Operation]
    /// What every launch does, after the other operations.
    public var everyLaunch: [Operation] = []
    /// What the schema asks for and is not done, with the reasons.
    public var withheld: [Withheld]
    /// What the operations mean for the values in the database.
    public var findings: [Finding]
    /// What else the caller should know.
    public var notes: [String]
    /// Whether the whole plan ran on the real rows, with the changes in memory, before it was told.
    public var isRehearsed = false
    /// Whether the schema is as it should be, so that at most the record of the version is to be put right.
    package internal(set) var isRecordOnly = false
    /// What the tables that it renames, or columns of which it renames, were before, by their new names.
    var origins: [SQLName: Origin] = [:]

    /// What a table was before the plan, where that is something else.
    package struct Origin: Sendable, Equatable {
        var table: SQLName
        /// New column name to old.
        var columns: [SQLName: SQLName]
    }

    /// A plan of the given parts.
    package init(
        from: SchemaVersion?, to: SchemaVersion, fingerprint: String = "", operations: [Operation] = [],
        withheld: [Withheld] = [], findings: [Finding] = [], notes: [String] = []
    ) {
        self.from = from
        self.to = to
        self.fingerprint = fingerprint
        self.operations = operations
        self.withheld = withheld
        self.findings = findings
        self.notes = notes
    }

    /// Whether there is nothing to do but what every launch does.
    public var isEmpty: Bool { operations.isEmpty }

    /// The name of the first Swift of the app's that it runs.
    var firstSwift: String? { (operations + everyLaunch).first { $0.kind == .swift }?.subject }
}

extension Plan: Encodable {
    private enum CodingKeys: String, CodingKey {
        case from, to, fingerprint, operations, everyLaunch, withheld, findings, notes, rehearsed
    }

    /// Writes the plan for machine output: `from` is the version's text or null.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(from?.description, forKey: .from)
        try container.encode(to, forKey: .to)
        try container.encode(fingerprint, forKey: .fingerprint)
        try container.encode(operations, forKey: .operations)
        try container.encode(everyLaunch, forKey: .everyLaunch)
        try container.encode(withheld, forKey: .withheld)
        try container.encode(findings, forKey: .findings)
        try container.encode(notes, forKey: .notes)
        try container.encode(isRehearsed, forKey: .rehearsed)
    }
}
