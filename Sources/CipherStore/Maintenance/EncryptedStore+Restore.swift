public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
internal import CipherSchemaMigration
public import CipherSystemFiles

extension EncryptedStore {
    /// Replaces a configuration's database with a backup, or creates the database from it.
    ///
    /// This does what `DatabaseConverter.restore` does, with the name, cipher formats and collations of the
    /// configuration. The schema is migrated the next time the database is opened. No store may have the database open.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the database.
    ///   - directory: The directory of the database file. It must exist; the file need not.
    ///   - backup: The backup, with its `-wal` if it has one. It may be plaintext only if
    ///     `unexpectedPlaintext` is `encrypt` in the configuration.
    ///   - keyProvider: The provider of the database's key, called on another thread; it creates the key if there is no
    ///     database.
    ///   - backupKeyProvider: The provider of the backup's key; `nil` if the backup has the database's key.
    ///   - options: The timeouts.
    ///   - progress: A closure that receives the progress of the restore, on the thread that does the work.
    /// - Returns: A report of what was copied and compared.
    /// - Throws: The same errors as `DatabaseConverter.restore`; also ``StoreError`` with the code `downgrade` for a
    ///   backup of a newer version than the configuration's, any other code with which planning the migration of the
    ///   backup would fail, or `encryptionDisabled` if encryption is off; `CancellationError`. No row changes before
    ///   the swap.
    @discardableResult
    public static func restore(
        _ configuration: Configuration, directory: URL, from backup: URL, keyProvider: any KeyProvider,
        backupKeyProvider: (any KeyProvider)? = nil, options: Options = Options(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await DetachedThread.cancellable { cancellation in
            try restoreHere(
                configuration, directory, backup, keyProvider, backupKeyProvider,
                options.upgrade(progress, cancellation))
        }
    }

    /// Restores as ``restore(_:directory:from:keyProvider:backupKeyProvider:options:progress:)`` does, but blocks the
    /// calling thread.
    ///
    /// Use `cancellation` to end the restore from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as that method, and `cancelled` if the restore was canceled in
    ///   time.
    @available(*, noasync, message: "await restore(_:directory:from:keyProvider:) instead")
    @discardableResult
    public static func restoreBlocking(
        _ configuration: Configuration, directory: URL, from backup: URL, keyProvider: any KeyProvider,
        backupKeyProvider: (any KeyProvider)? = nil, options: Options = Options(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        try restoreHere(
            configuration, directory, backup, keyProvider, backupKeyProvider, options.upgrade(progress, cancellation))
    }

    private static func restoreHere(
        _ configuration: Configuration, _ directory: URL, _ backup: URL, _ keyProvider: any KeyProvider,
        _ backupKeyProvider: (any KeyProvider)?, _ options: ConversionOptions
    ) throws -> EncryptionReport {
        try StoreOpening(
            configuration: configuration, directory: try directory.requiredPath(), provider: keyProvider,
            options: options
        ).restore(from: backup.requiredPath(), backupKeyProvider)
    }
}

extension StoreOpening {
    /// Replaces the database with a backup, unless opening would refuse the backup's version or schema.
    fileprivate func restore(
        from backup: String, _ backupProvider: (any KeyProvider)?
    ) throws -> EncryptionReport {
        try checkInputs()
        guard configuration.encryption.isEnabled else {
            throw StoreError(
                .encryptionDisabled, path: paths.database,
                "encryption is off in the configuration, but restoring always produces an encrypted database",
                advice: "turn encryption on", changed: .nothing)
        }
        let formats = configuration.encryption.formats
        return try DatabaseRestore(
            of: backup, backupProvider: backupProvider, to: paths, provider: provider, formats: formats,
            backupFormats: formats, allowsPlaintext: configuration.encryption.unexpectedPlaintext == .encrypt,
            options: options
        ).run { connection in
            // If opening refused the backup, the database that it replaced would already be gone.
            _ = try SchemaMigrator(configuration: configuration)
                .plan(connection, recorded: resolver.recordedVersion(connection))
        }
    }
}
