package import CipherHistory
package import CipherSQLite

/// The goal of a schema migration, independent of its source.
package struct SchemaGoal: Sendable {
    /// The version of the schema that the app requests.
    package var version: SchemaVersion
    /// The place where the app records its version.
    package var recordedVersion = RecordedVersion.userVersion
    /// The policy for changes that would lose data or parts of the schema.
    package var destructiveChanges = DestructiveChanges.withhold
    /// The app's own extensions that its schema and steps need.
    package var extensions = SQLExtensions()
    /// The app's hooks that run while its database is opened.
    package var launch = LaunchHooks()

    /// Creates a goal with defaults.
    package init(version: SchemaVersion) {
        self.version = version
    }

    /// Whether the app's own code may fill or empty tables after the schema has changed.
    var hasHooksOnRows: Bool { launch.upgrade != nil || launch.everyLaunch != nil || launch.unchanged != nil }
}
