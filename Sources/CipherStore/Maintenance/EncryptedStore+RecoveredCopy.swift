public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
package import CipherSQLite
internal import CipherSchemaMigration
public import CipherSystemFiles

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension EncryptedStore {
    /// Creates a new, encrypted database from what a damaged one still contains, with the schema of a configuration if
    /// the damaged one's own is lost.
    ///
    /// Does what `DatabaseConverter.recover` does, with the cipher formats, collations, functions and tokenizers of the
    /// configuration. The schema is the one that a first install has: the app's steps run in an empty database in
    /// memory, its Swift too. If the damaged file has its schema, that counts. The damaged file is never written, and
    /// the new one is migrated when it is opened.
    ///
    /// - Parameters:
    ///   - damaged: The damaged database file, plaintext or encrypted.
    ///   - recovered: Where the new database is to be. Its directory must exist, and no file may have its name.
    ///   - configuration: What the app wants the database to be.
    ///   - keyProvider: Gives the key of the damaged database where it is encrypted, and of the new one.
    ///   - recoveredKeyProvider: Gives another key for the new database, and may create it.
    ///   - options: How long to wait.
    ///   - progress: Called with how far the recovery is, on the thread that works.
    /// - Returns: What was recovered, and what is lost.
    /// - Throws: ``StoreError`` as `DatabaseConverter.recover` does, and with `configuration` or `migration` if the
    ///   schema cannot be made; `CancellationError`. The new file does not exist then.
    @discardableResult
    public static func recover(
        _ damaged: URL, to recovered: URL, configuration: Configuration, keyProvider: any KeyProvider,
        recoveredKeyProvider: (any KeyProvider)? = nil, options: Options = Options(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> RecoveryReport {
        try await DetachedThread.cancellable { cancellation in
            try recoverCopy(
                damaged, recovered, configuration, keyProvider, recoveredKeyProvider,
                options.upgrade(progress, cancellation))
        }
    }

    /// Recovers as ``recover(_:to:configuration:keyProvider:recoveredKeyProvider:options:progress:)`` does, blocking
    /// the calling thread.
    ///
    /// The cancellation ends the recovery from another thread.
    ///
    /// - Throws: ``StoreError`` as that does, with `cancelled` if the recovery was cancelled in time.
    @available(*, noasync, message: "await recover(_:to:configuration:keyProvider:) instead")
    @discardableResult
    public static func recoverBlocking(
        _ damaged: URL, to recovered: URL, configuration: Configuration, keyProvider: any KeyProvider,
        recoveredKeyProvider: (any KeyProvider)? = nil, options: Options = Options(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> RecoveryReport {
        try recoverCopy(
            damaged, recovered, configuration, keyProvider, recoveredKeyProvider,
            options.upgrade(progress, cancellation))
    }

    private static func recoverCopy(
        _ damaged: URL, _ recovered: URL, _ configuration: Configuration, _ keyProvider: any KeyProvider,
        _ recoveredKeyProvider: (any KeyProvider)?, _ options: ConversionOptions
    ) throws -> RecoveryReport {
        var options = options
        options.format = configuration.encryption.format
        options.extensions = configuration.extensions
        var recovery = try DatabaseRecovery(
            of: DatabasePaths(damaged.requiredPath()), provider: keyProvider,
            formats: configuration.encryption.formats, to: recovered.requiredPath(),
            targetProvider: recoveredKeyProvider, template: nil, options: options)
        recovery.makeSchema = { try configuration.makeSchema(in: $0) }
        return try recovery.run()
    }
}

extension Configuration {
    /// Makes the schema of a first install in an empty database.
    ///
    /// - Throws: ``StoreError`` with `configuration` or `migration` if it cannot be made.
    package func makeSchema(in connection: Connection) throws {
        _ = try SchemaMigrator(configuration: self).migrate(connection) { nil }
    }
}
