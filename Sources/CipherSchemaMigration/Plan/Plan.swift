public import CipherHistory
internal import CipherSQLText

/// The operations of a schema migration, each with its SQL, reason and risk.
///
/// A plan is made without side effects, so it can be printed, judged and refused before anything is changed.
public struct Plan: Sendable, Equatable {
    /// The version of the database; `nil` if none is recorded.
    public var from: SchemaVersion?
    /// The version that the configuration requests.
    public var to: SchemaVersion
    /// A checksum that distinguishes one target schema from another.
    ///
    /// The history stores it, so that a later reader sees which schema was applied. It protects against mistakes, not
    /// against forgery.
    package var fingerprint: String
    /// The operations, in order.
    public var operations: [Operation]
    /// The operations of every launch, which follow the other operations.
    public var everyLaunch: [Operation] = []
    /// The changes that the schema requires but that are not made, with the reasons.
    public var withheld: [Withheld]
    /// The consequences of the operations for the values in the database.
    public var findings: [Finding]
    /// Further notes for the caller.
    public var notes: [String]
    /// Whether the whole plan was rehearsed on the real rows, with the changes in memory.
    public var isRehearsed = false
    /// Whether the database already has the target schema, so that at most the record of the version must be corrected.
    package internal(set) var isRecordOnly = false
    /// The former names of tables that the plan renames or whose columns it renames, by the new names.
    var origins: [SQLName: Origin] = [:]
    /// The indexes, views and triggers that the schema contains.
    var declared: Set<DatabaseState.Object.Identity> = []

    /// The former names of a table and of its columns, if they differ.
    package struct Origin: Sendable, Equatable {
        var table: SQLName
        /// The new column names, each with the old name.
        var columns: [SQLName: SQLName]
    }

    /// Creates a plan from the given parts.
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

    /// Whether there is nothing to do except the operations of every launch.
    public var isEmpty: Bool { operations.isEmpty }

    /// The name of the first piece of the app's Swift code that the plan runs.
    var firstSwift: String? { (operations + everyLaunch).first { $0.kind == .swift }?.subject }
}

extension Plan: Encodable {
    private enum CodingKeys: String, CodingKey {
        case from, to, fingerprint, operations, everyLaunch, withheld, findings, notes, rehearsed
    }

    /// Encodes the plan for machine output: `from` is the version's text or null.
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
