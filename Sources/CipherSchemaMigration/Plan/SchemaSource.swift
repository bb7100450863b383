package import CipherHistory

/// A way for an app to describe its schema.
///
/// A source only compares and never writes: it maps the state of a database to the operations that lead to the target
/// schema. The code that applies the operations does not depend on the kind of source. After they are applied, the plan
/// for the new state must be empty.
package protocol SchemaSource {
    /// Returns the plan for a database in this state, without the record of the version.
    func plan(for state: DatabaseState) throws -> Plan

    /// Whether the source compares the database's schema with the target schema, and so may write back what it read.
    var comparesSchema: Bool { get }

    /// The steps, if the source consists of steps; otherwise empty.
    ///
    /// The history stores the steps, so that a step that was changed or removed after it was applied can be detected.
    var recordedSteps: [SchemaStep] { get throws }

    /// The names of the app's own steps; empty for a source without steps.
    var stepNames: [String] { get }
}

extension SchemaSource {
    package var comparesSchema: Bool { true }
    package var recordedSteps: [SchemaStep] { [] }
    package var stepNames: [String] { [] }
}

/// The source of an app that manages its schema itself.
package struct UnmanagedSource: SchemaSource {
    package let version: SchemaVersion

    package init(version: SchemaVersion) {
        self.version = version
    }

    package let comparesSchema = false

    package func plan(for state: DatabaseState) -> Plan {
        Plan(from: state.recorded, to: version)
    }
}
