package import CipherHistory
package import CipherSQLite

/// What a schema migration is to reach, whatever source says it.
package struct SchemaGoal: Sendable {
    /// The version of the schema that the app wants.
    package var version: SchemaVersion
    /// Where the app records its version.
    package var recordedVersion = RecordedVersion.userVersion
    /// What becomes of changes that would lose something.
    package var destructiveChanges = DestructiveChanges.withhold
    /// What the app's schema and steps need of the app's own.
    package var extensions = SQLExtensions()
    /// The app's hooks that run while its database is opened.
    package var launch = LaunchHooks()

    /// The defaults.
    package init(version: SchemaVersion) {
        self.version = version
    }

    /// Whether code of the app's own may fill or empty tables after the schema has changed.
    var hasHooksOnRows: Bool { launch.upgrade != nil || launch.everyLaunch != nil || launch.unchanged != nil }
}
