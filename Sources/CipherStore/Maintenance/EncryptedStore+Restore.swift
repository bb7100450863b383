public import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
public import CipherKeyProviders
public import CipherSystemFiles

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension EncryptedStore {
    /// Replaces a configuration's database with a backup, or creates the database from it.
    ///
    /// Does what `DatabaseConverter.restore` does, with the name, the cipher formats and the collations of the configuration.
    /// The schema is migrated when the database is opened next. No store may have it open.
    ///
    /// - Parameters:
    ///   - configuration: What the app wants the database to be.
    ///   - directory: The directory that holds the file, or is to hold it. It must exist.
    ///   - backup: The backup, with its `-wal` if it has one; it may be plaintext.
    ///   - keyProvider: Gives the key of the database, on another thread; makes it where there is no database.
    ///   - backupKeyProvider: Gives the key of the backup; `nil` for that of the database.
    ///   - options: How long to wait.
    ///   - progress: Called with how far the run is, on the thread that works.
    /// - Returns: What was copied and compared.
    /// - Throws: ``StoreError`` as `DatabaseConverter.restore` does, with `downgrade` for a backup of a newer version
    ///   than the configuration's, and with `encryptionDisabled` if encryption is off; `CancellationError`. Until the
    ///   swap no row has changed.
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

    /// Restores as ``restore(_:directory:from:keyProvider:backupKeyProvider:options:progress:)`` does, blocking the
    /// calling thread.
    ///
    /// The cancellation ends the run from another thread.
    ///
    /// - Throws: ``StoreError`` as that does, with `cancelled` if the run was cancelled in time.
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
    /// Has a backup, unless it is of a newer version, take the database's place.
    fileprivate func restore(
        from backup: String, _ backupProvider: (any KeyProvider)?
    ) throws -> EncryptionReport {
        try checkInputs()
        guard configuration.encryption.isEnabled else {
            throw StoreError(
                .encryptionDisabled, path: paths.database,
                "encryption is off in the configuration, but a restored database is encrypted",
                advice: "turn encryption on", changed: .nothing)
        }
        let formats = configuration.encryption.formats
        return try DatabaseRestore(
            of: backup, backupProvider: backupProvider, to: paths, provider: provider, formats: formats,
            backupFormats: formats, options: options
        ).run { connection in
            // Opening would refuse it, and the database that it replaced would be gone.
            guard let recorded = try resolver.recordedVersion(connection), recorded > configuration.version else {
                return
            }
            throw StoreError.downgrade(
                from: recorded, try VersionRecords(connection), to: configuration.version, path: backup)
        }
    }
}
