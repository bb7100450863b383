package import CipherHistory

/// A way in which an app says what its schema is.
///
/// A source only compares and never writes: it maps the state of a database to the operations that lead to the wanted
/// schema. Who applies them knows no source. Once they are applied, the plan for the new state must be empty.
package protocol SchemaSource {
    /// What is to be done to a database in this state. The record of the version is not a source's concern.
    func plan(for state: DatabaseState) throws -> Plan

    /// Whether it compares the database's schema with the wanted one, and so writes again what it has read.
    var comparesSchema: Bool { get }

    /// The steps of a source that consists of steps; none of any other.
    ///
    /// The history keeps them, so that one that was changed or taken away after it had been applied is found.
    var recordedSteps: [SchemaStep] { get throws }

    /// The names of the app's own steps; none of a source without steps.
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
