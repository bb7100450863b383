public import CipherKeyProviders
internal import CipherSQLite
internal import CipherSchemaMigration
public import CipherStore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Takes databases of older versions through everything that opening does, and compares what they become with a fresh
/// install.
///
/// ```swift
/// try await verifyMigrations(from: fixtures, to: configuration)
/// ```
///
/// Each fixture is copied, encrypted where it is plaintext, and migrated, as on a user's device. Afterwards its schema must
/// equal a fresh install's, table by table and column by column, with views, indexes and triggers, whatever the formatting
/// of their SQL; and opening it again must find nothing left to do. Works in Swift Testing and XCTest alike.
///
/// - Parameters:
///   - fixtures: Database files, plaintext or encrypted, with their `-wal` or `-journal` beside them where they have one; or
///     folders with such a file and what else belongs beside it, such as a property list that records the version.
///   - configuration: What the app wants now.
///   - keyProvider: Gives the keys; by default one fixed key, which serves for plaintext fixtures.
///   - allowed: Differences from a fresh install that are no failure.
///   - check: Looks into each migrated database; what it throws is a failure of that fixture.
/// - Throws: ``MigrationVerificationError`` with everything that is wrong, of all fixtures; what opening a fresh install
///   throws.
public func verifyMigrations(
    from fixtures: [URL], to configuration: Configuration, keyProvider: any KeyProvider = .fixedTestKey,
    allowing allowed: AllowedDifferences = [], check: (@Sendable (EncryptedStore, URL) async throws -> Void)? = nil
) async throws {
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

/// Differences between a migrated database and a fresh install that an app can live with.
public struct AllowedDifferences: OptionSet, Sendable {
    /// One bit for each of them.
    public let rawValue: Int

    /// A set of the given bits.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Tables, columns, views, indexes and triggers that only the migrated database has, such as tables that are never
    /// dropped.
    public static let additions = AllowedDifferences(rawValue: 1)
    /// Columns in another order: a column that was added to an old table stands at its end.
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
    /// One key that is no secret, for tests.
    public static var fixedTestKey: ClosureKeyProvider {
        .closure { _, _ in try .raw(SecretBytes(repeatElement(1, count: CipherKey.rawKeyLength))) }
    }
}
