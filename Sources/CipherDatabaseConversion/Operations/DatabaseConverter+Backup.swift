public import CipherKeyProviders
public import CipherPlatform
public import CipherSQLite
public import CipherSystemFiles

extension DatabaseConverter {
    // MARK: Backing up

    /// Makes a proven, encrypted copy of a database under another name while other connections may write to the
    /// database.
    ///
    /// The backup is one commit of the database. It is compared with the database row by row, as in an encryption, and
    /// appears under its name complete, in one step that replaces nothing. It needs no `-wal` beside it. The database
    /// stays as it is. In WAL mode, other connections continue to write, and the log grows meanwhile. In any other
    /// mode, writers wait for the backup, for as long as their lock timeout allows. An open ``EncryptedStore`` makes
    /// its own backups, which never cause its writers to fail.
    ///
    /// The task can be canceled until the backup is renamed into place. A canceled backup leaves nothing.
    ///
    /// - Parameters:
    ///   - database: The database file.
    ///   - backup: The location of the backup. Its directory must exist, and no file may have its name.
    ///   - keyProvider: Provides the key of the database, on another thread. It never creates one.
    ///   - backupKeyProvider: Provides the key of the backup, and may create it; `nil` to use the key and the cipher
    ///     format of the database.
    ///   - formats: The cipher formats that the database may have, in the order in which they are tried.
    ///   - options: The options of the run. If the backup has its own key, the format is that of the backup.
    ///   - progress: Called with the progress of the backup, on the thread that does the work.
    /// - Returns: A report of what was copied and compared. Its path is that of the backup.
    /// - Throws: ``StoreError``, with the code `nameTaken` if the backup's name is taken, `missingFile` if the database
    ///   or the directory of the backup is missing, `keyDoesNotFit`, `noSpace`, `unexpectedPlaintext` if the database
    ///   is plaintext and no key was passed for the backup, or `busy` if another connection holds the write lock for
    ///   too long; `CancellationError`.
    @discardableResult
    public static func backup(
        of database: URL, to backup: URL, keyProvider: any KeyProvider, backupKeyProvider: (any KeyProvider)? = nil,
        formats: [CipherSettings] = [CipherSettings()], options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await DetachedThread.cancellable { cancellation in
            try backupHere(
                database, backup, keyProvider, backupKeyProvider, formats,
                checked(options, database, progress, cancellation))
        }
    }

    /// Backs a database up as ``backup(of:to:keyProvider:backupKeyProvider:formats:options:progress:)`` does, blocking
    /// the calling thread.
    ///
    /// Use `cancellation` to stop the backup from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as the asynchronous method, and `cancelled` if the backup was
    ///   canceled in time.
    @available(*, noasync, message: "await backup(of:to:keyProvider:) instead")
    @discardableResult
    public static func backupBlocking(
        of database: URL, to backup: URL, keyProvider: any KeyProvider, backupKeyProvider: (any KeyProvider)? = nil,
        formats: [CipherSettings] = [CipherSettings()], options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        try backupHere(
            database, backup, keyProvider, backupKeyProvider, formats,
            checked(options, database, progress, cancellation))
    }

    private static func backupHere(
        _ database: URL, _ backup: URL, _ keyProvider: any KeyProvider, _ backupKeyProvider: (any KeyProvider)?,
        _ formats: [CipherSettings], _ options: ConversionOptions
    ) throws -> EncryptionReport {
        try checkFormats(formats, database)
        return try FileBackup(
            of: DatabasePaths(database.requiredPath()), provider: keyProvider, formats: formats,
            to: backup.requiredPath(), backupProvider: backupKeyProvider, options: options
        ).run()
    }

    // MARK: Restoring

    /// Replaces a database with a backup, or creates the database from it.
    ///
    /// First, every page and the structure of the backup are checked; the backup is never written to. Its copy is built
    /// beside the database with the database's key, compared with the backup row by row, and replaces the database in
    /// one step: at every instant, the file at the database's name is the whole old database or the whole new one.
    /// After a crash, call this method again. No process may have the database open. The database keeps its cipher
    /// format, journal mode, owner and mode; its old rows are lost.
    ///
    /// A database that cannot be opened is not replaced, because its log may contain data that exists nowhere else.
    /// Move that database elsewhere together with the files beside it, and then restore again.
    ///
    /// The task can be canceled until the copy takes the database's place.
    ///
    /// - Parameters:
    ///   - database: The database file; it may be missing, and its directory must exist.
    ///   - backup: The backup, with its `-wal` if it has one.
    ///   - keyProvider: Provides the key of the database, on another thread, and creates it if there is no database.
    ///   - backupKeyProvider: Provides the key of the backup; `nil` to use that of the database.
    ///   - allowsPlaintext: Whether the backup may be plaintext. Nothing shows who wrote the rows of such a file.
    ///   - formats: The cipher formats that the database and the backup may have, in the order in which they are tried.
    ///   - options: The options of the run. The format is used for a database that is missing.
    ///   - progress: Called with the progress of the run, on the thread that does the work.
    /// - Returns: A report of what was copied and compared.
    /// - Throws: ``StoreError``, with the code `missingFile` if there is no backup, `corrupt` if it is damaged,
    ///   `staleSidecar`, `keyDoesNotFit` if a key opens the backup or the database in none of the formats,
    ///   `unexpectedPlaintext` if the database is not encrypted, or if the backup is not and that is not allowed, or
    ///   `busy` if the database is in use; `CancellationError`. Until the swap, no row has changed.
    @discardableResult
    public static func restore(
        _ database: URL, from backup: URL, keyProvider: any KeyProvider, backupKeyProvider: (any KeyProvider)? = nil,
        allowsPlaintext: Bool = false, formats: [CipherSettings] = [CipherSettings()],
        options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await DetachedThread.cancellable { cancellation in
            try restoreHere(
                database, backup, keyProvider, backupKeyProvider, allowsPlaintext, formats,
                checked(options, database, progress, cancellation))
        }
    }

    /// Restores as ``restore(_:from:keyProvider:backupKeyProvider:allowsPlaintext:formats:options:progress:)`` does,
    /// blocking the calling thread.
    ///
    /// Use `cancellation` to stop the run from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as the asynchronous method, and `cancelled` if the run was
    ///   canceled in time.
    @available(*, noasync, message: "await restore(_:from:keyProvider:) instead")
    @discardableResult
    public static func restoreBlocking(
        _ database: URL, from backup: URL, keyProvider: any KeyProvider, backupKeyProvider: (any KeyProvider)? = nil,
        allowsPlaintext: Bool = false, formats: [CipherSettings] = [CipherSettings()],
        options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        try restoreHere(
            database, backup, keyProvider, backupKeyProvider, allowsPlaintext, formats,
            checked(options, database, progress, cancellation))
    }

    private static func restoreHere(
        _ database: URL, _ backup: URL, _ keyProvider: any KeyProvider, _ backupKeyProvider: (any KeyProvider)?,
        _ allowsPlaintext: Bool, _ formats: [CipherSettings], _ options: ConversionOptions
    ) throws -> EncryptionReport {
        try checkFormats(formats, database)
        return try DatabaseRestore(
            of: backup.requiredPath(), backupProvider: backupKeyProvider, to: DatabasePaths(database.requiredPath()),
            provider: keyProvider, formats: formats, backupFormats: formats, allowsPlaintext: allowsPlaintext,
            options: options
        ).run()
    }
}
