package import CipherSQLText

/// Compares the real database with a wanted schema.
///
/// Looks at both as SQLite sees them, so that formatting and the order of columns are no difference.
package struct SchemaComparison {
    /// What becomes of a table that the wanted schema does not name.
    package enum Unnamed: Sendable {
        /// It is kept silently.
        case keep
        /// It is dropped where the policy allows it, and reported as withheld where it does not.
        case drop
    }

    /// The schema that is wanted.
    package var wanted: WantedSchema
    /// What becomes of changes that lose something.
    package var policy: DestructiveChanges
    /// Tables that are never dropped, such as the app's own version record.
    package var keptTables: Set<SQLName>
    /// What becomes of tables that the wanted schema does not name.
    package var unnamedTables: Unnamed

    /// Whether rows may be added behind the changes, to which new foreign keys may refer.
    package var rowsFollow: Bool

    package init(
        wanted: WantedSchema, policy: DestructiveChanges, keptTables: Set<SQLName> = [],
        unnamedTables: Unnamed = .drop, rowsFollow: Bool = false
    ) {
        self.wanted = wanted
        self.policy = policy
        self.keptTables = keptTables
        self.unnamedTables = unnamedTables
        self.rowsFollow = rowsFollow
    }

    /// What leads from the real database to the wanted schema.
    package func changes(for state: DatabaseState) throws -> SchemaChanges {
        var difference = try SchemaDifference(self, state)
        return try difference.compare()
    }
}

/// What a comparison found, as parts of a plan.
package struct SchemaChanges: Sendable, Equatable {
    package var operations: [Plan.Operation] = []
    package var withheld: [Plan.Withheld] = []
    package var findings: [Plan.Finding] = []
    package var notes: [String] = []
    var origins: [SQLName: Plan.Origin] = [:]

    package init() {}
}

extension Plan {
    /// Adds what a comparison found.
    package mutating func add(_ changes: SchemaChanges) {
        operations += changes.operations
        withheld += changes.withheld
        findings += changes.findings
        notes += changes.notes
        origins.merge(changes.origins) { _, new in new }
    }
}
