public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
package import CipherSQLite
internal import CipherSchemaMigration
public import CipherSystemFiles

extension EncryptedStore {
    /// Creates a new, encrypted database from the recoverable content of a damaged one, with the schema of a
    /// configuration if the damaged database's own schema is lost.
    ///
    /// This does what `DatabaseConverter.recover` does, with the cipher formats, collations, functions and tokenizers
    /// of the configuration. If the damaged file still has its schema, that schema is used. Otherwise the schema is
    /// that of a fresh install: the app's steps, including those in Swift, run in an empty in-memory database. The
    /// damaged file is never written to, and the new one is migrated when it is opened.
    ///
    /// - Parameters:
    ///   - damaged: The damaged database file, plaintext or encrypted.
    ///   - recovered: The location of the new database. Its directory must exist, and no file may have its name.
    ///   - configuration: The configuration of the database.
    ///   - keyProvider: The provider of the damaged database's key, if it is encrypted, and of the new database's key.
    ///   - recoveredKeyProvider: The provider of a different key for the new database, which may create it.
    ///   - options: The timeouts.
    ///   - progress: A closure that receives the progress of the recovery, on the thread that does the work.
    /// - Returns: A report of what was recovered and what was lost.
    /// - Throws: The same errors as `DatabaseConverter.recover`; also ``StoreError`` with the code `configuration` or
    ///   `migration` if the schema cannot be created; `CancellationError`. After an error the new file does not exist.
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

    /// Recovers as ``recover(_:to:configuration:keyProvider:recoveredKeyProvider:options:progress:)`` does, but blocks
    /// the calling thread.
    ///
    /// Use `cancellation` to end the recovery from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as that method, and `cancelled` if the recovery was canceled in
    ///   time.
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
    /// Creates the schema of a fresh install in an empty database.
    ///
    /// - Throws: ``StoreError`` with the code `configuration` or `migration` if the schema cannot be created.
    package func makeSchema(in connection: Connection) throws {
        _ = try SchemaMigrator(configuration: self).migrate(connection) { nil }
    }
}
