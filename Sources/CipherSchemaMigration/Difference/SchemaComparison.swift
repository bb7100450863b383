package import CipherSQLText

/// Compares the real database with a target schema.
///
/// Both are compared as SQLite interprets them, so formatting and the order of columns are not differences.
package struct SchemaComparison {
    /// The treatment of a table that the target schema does not name.
    package enum Unnamed: Sendable {
        /// The table is kept silently.
        case keep
        /// The table is dropped if the policy allows it, and otherwise reported as withheld.
        case drop
    }

    /// The target schema.
    package var wanted: WantedSchema
    /// The policy for changes that lose data or parts of the schema.
    package var policy: DestructiveChanges
    /// Tables that are never dropped, such as the app's own version record.
    package var keptTables: Set<SQLName>
    /// The treatment of tables that the target schema does not name.
    package var unnamedTables: Unnamed

    /// Whether rows to which new foreign keys refer may be added after the changes.
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

    /// Returns the changes that give the real database the target schema.
    package func changes(for state: DatabaseState) throws -> SchemaChanges {
        var dropped: Set<SQLName> = []
        while true {
            var difference = try SchemaDifference(self, state, dropping: dropped)
            let (changes, all) = try difference.compare()
            // A dropped table needs no column, and a dropped column refers to no table, so more tables may be dropped.
            guard all.isStrictSuperset(of: dropped) else { return changes }
            dropped = all
        }
    }
}

/// The results of a comparison, as parts of a plan.
package struct SchemaChanges: Sendable, Equatable {
    package var operations: [Plan.Operation] = []
    package var withheld: [Plan.Withheld] = []
    package var findings: [Plan.Finding] = []
    package var notes: [String] = []
    var origins: [SQLName: Plan.Origin] = [:]
    var declared: Set<DatabaseState.Object.Identity> = []

    package init() {}
}

extension Plan {
    /// Adds the results of a comparison.
    package mutating func add(_ changes: SchemaChanges) {
        operations += changes.operations
        withheld += changes.withheld
        findings += changes.findings
        notes += changes.notes
        origins.merge(changes.origins) { _, new in new }
        declared.formUnion(changes.declared)
    }
}
