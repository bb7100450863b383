public import CipherHistory
public import CipherSQLite

/// Which kind of launch this is, judged by the versions of the database and the app.
///
/// A database that is newer than the app is refused with a ``StoreError`` of `downgrade`, and one that cannot be opened
/// or is of an unknown version is never a first install.
public enum LaunchKind: Sendable, Equatable {
    /// There was no database, or one without anything in it.
    case firstInstall
    /// The database is older than the app; `nil` if no one knows how old.
    case upgrade(from: SchemaVersion?, to: SchemaVersion)
    /// The database has the app's version.
    case unchanged

    /// The kind alone, for machine output.
    var name: String {
        switch self {
        case .firstInstall: "firstInstall"
        case .upgrade: "upgrade"
        case .unchanged: "unchanged"
        }
    }
}

/// Swift of an app's own that runs while a store is opened, by the kind of launch.
///
/// Each runs inside the migration's transaction and must not end it: what it throws undoes everything. Foreign keys are
/// not enforced meanwhile; if the schema is migrated too, what would be broken is found at the end.
public struct LaunchHooks: Sendable {
    /// Runs once, when the database has been made.
    public var firstInstall: (@Sendable (Connection) throws -> Void)?
    /// Runs when the schema has been brought from an older version to the app's.
    public var upgrade: (@Sendable (Connection, _ from: SchemaVersion?, _ to: SchemaVersion) throws -> Void)?
    /// Runs when the database has the app's version already; every launch then waits for the write lock.
    public var unchanged: (@Sendable (Connection) throws -> Void)?
    /// Runs at every launch, after the others; every launch then waits for the write lock.
    public var everyLaunch: (@Sendable (Connection) throws -> Void)?

    /// Hooks for the kinds of launch that matter to the app.
    public init(
        firstInstall: (@Sendable (Connection) throws -> Void)? = nil,
        upgrade: (@Sendable (Connection, _ from: SchemaVersion?, _ to: SchemaVersion) throws -> Void)? = nil,
        unchanged: (@Sendable (Connection) throws -> Void)? = nil,
        everyLaunch: (@Sendable (Connection) throws -> Void)? = nil
    ) {
        self.firstInstall = firstInstall
        self.upgrade = upgrade
        self.unchanged = unchanged
        self.everyLaunch = everyLaunch
    }
}

extension LaunchHooks {
    /// What plans and `destructiveSteps` call ``upgrade``.
    static let upgradeName = "at the upgrade"
}
