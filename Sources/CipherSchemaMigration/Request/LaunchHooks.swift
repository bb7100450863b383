public import CipherHistory
public import CipherSQLite

/// The kind of a launch, determined by the versions of the database and the app.
///
/// A database that is newer than the app is refused with a ``StoreError`` with the code `downgrade`. A database that
/// cannot be opened, or whose version is unknown, is never treated as a first install.
public enum LaunchKind: Sendable, Equatable {
    /// There was no database, or an empty one.
    case firstInstall
    /// The database is older than the app; `from` is `nil` if its version is unknown.
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

/// An app's own Swift code that runs while a store is opened, by the kind of launch.
///
/// Each hook runs inside the migration's transaction and must not end it; an error that it throws undoes everything.
/// Foreign keys are not enforced while a hook runs; if the schema is also migrated, new violations are detected at the
/// end.
public struct LaunchHooks: Sendable {
    /// A hook that runs once, after the database was created.
    public var firstInstall: (@Sendable (Connection) throws -> Void)?
    /// A hook that runs after the schema was migrated from an older version to the app's.
    public var upgrade: (@Sendable (Connection, _ from: SchemaVersion?, _ to: SchemaVersion) throws -> Void)?
    /// A hook that runs if the database already has the app's version; every launch then waits for the write lock.
    public var unchanged: (@Sendable (Connection) throws -> Void)?
    /// A hook that runs at every launch, after the other hooks; every launch then waits for the write lock.
    public var everyLaunch: (@Sendable (Connection) throws -> Void)?

    /// Creates hooks for the kinds of launch that matter to the app.
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
    /// The name of ``upgrade`` in plans and in `destructiveSteps`.
    static let upgradeName = "at the upgrade"
}
