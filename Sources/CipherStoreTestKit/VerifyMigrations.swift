internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
internal import CipherSQLite
internal import CipherSchemaMigration
public import CipherStore

/// Opens databases of older versions as an app would, and compares the results with a fresh install.
///
/// ```swift
/// try await verifyMigrations(from: fixtures, to: configuration)
/// ```
///
/// Each fixture is copied, encrypted if it is plaintext, and migrated, as on a user's device. Afterwards its schema
/// must match that of a fresh install, table by table and column by column, including views, indexes and triggers,
/// whatever the formatting of their SQL. Opening the database again must change nothing. This function works in both
/// Swift Testing and XCTest.
///
/// - Parameters:
///   - fixtures: Database files, plaintext or encrypted, with any `-wal` or `-journal` beside them; or folders that
///     contain such a file and everything else that belongs beside it, such as a property list that records the
///     version.
///   - configuration: The configuration of the current app version.
///   - keyProvider: The provider of the keys. The default is a single fixed key, which suffices for plaintext fixtures.
///   - allowed: Differences from a fresh install that are not treated as failures.
///   - check: A closure that inspects each migrated database; if it throws, that fixture fails.
/// - Throws: ``MigrationVerificationError`` with every problem of every fixture; `StoreError` with the code `misuse` if
///   there are no fixtures; any error from opening a fresh install.
public func verifyMigrations(
    from fixtures: [URL], to configuration: Configuration, keyProvider: any KeyProvider = .fixedTestKey,
    allowing allowed: AllowedDifferences = [], check: (@Sendable (EncryptedStore, URL) async throws -> Void)? = nil
) async throws {
    guard !fixtures.isEmpty else {
        throw StoreError(
            .misuse, "there are no fixtures, so no migration was verified",
            advice: "check that the test target contains the fixtures")
    }
    let folder = MigrationTestFolder(configuration: configuration, keyProvider: keyProvider)
    let wanted = try await folder.schemaOfFreshInstall()
    var failures: [MigrationVerificationError.Failure] = []
    for fixture in fixtures {
        do {
            let problems = try await folder.problems(of: fixture, wanted: wanted, allowed: allowed, check: check)
            if !problems.isEmpty { failures.append(.init(fixture: fixture, problems: problems)) }
        } catch {
            failures.append(.init(fixture: fixture, problems: [.failed(error)]))
        }
    }
    guard failures.isEmpty else { throw MigrationVerificationError(failures: failures) }
}

/// Differences between a migrated database and a fresh install that an app can accept.
public struct AllowedDifferences: OptionSet, Sendable {
    /// A bit mask of the allowed differences.
    public let rawValue: Int

    /// Creates a set from a bit mask.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Tables, columns, views, indexes and triggers that only the migrated database has, such as tables that are never
    /// dropped.
    public static let additions = AllowedDifferences(rawValue: 1)
    /// Columns in a different order: a column added to an old table is the last one.
    public static let columnOrder = AllowedDifferences(rawValue: 2)

    func covers(_ difference: SchemaMismatch) -> Bool {
        switch difference.kind {
        case .unexpected: contains(.additions)
        case .reordered: contains(.columnOrder)
        case .missing, .differs: false
        }
    }
}

extension KeyProvider where Self == ClosureKeyProvider {
    /// A fixed key for tests; it is not secret.
    public static var fixedTestKey: ClosureKeyProvider {
        .closure { _, _ in try .raw(SecretBytes(repeatElement(1, count: CipherKey.rawKeyLength))) }
    }
}
