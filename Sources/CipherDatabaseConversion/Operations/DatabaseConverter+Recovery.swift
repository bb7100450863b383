public import CipherKeyProviders
public import CipherPlatform
public import CipherSQLite
public import CipherSystemFiles

extension DatabaseConverter {
    /// Creates a new, encrypted database from what a damaged one still contains.
    ///
    /// The damaged database, plaintext or encrypted, is read page by page together with its log or hot journal, and is
    /// never written to. A row is restored to its table with its rowid and values if the table's pages lead to it. If
    /// those pages are lost, it is still restored if the shape of the row and the index entries that refer to it
    /// identify its table. Rows that cannot be assigned to one table, rows of free pages and rows that contradict their
    /// page are stored in the table `lost_and_found`, each with the reason. Indexes and full-text indexes are rebuilt.
    /// Every row is compared with a second reading before the new database is renamed into place.
    ///
    /// In a plaintext file, a value that was damaged in place cannot be distinguished from a correct one.
    ///
    /// - Parameters:
    ///   - database: The damaged database file.
    ///   - recovered: Where to create the new database. Its directory must exist, and no file may have its name.
    ///   - keyProvider: Provides the key of the damaged database if it is encrypted, and of the new one.
    ///   - recoveredKeyProvider: Provides a different key for the new database, and may create it.
    ///   - template: A healthy database with the same schema, plaintext or with the key of the damaged one. It
    ///     identifies the tables if the schema of the damaged database is lost.
    ///   - formats: Cipher formats that the damaged database may have. A format with HMACs is found even if it is not
    ///     named. A database without HMACs, as in format 1, is recovered only if its format is named, because anyone who
    ///     can write such a file can change its rows.
    ///   - options: The options of the run. Its format is that of the new database; if it is the default, the new
    ///     database has the format of the damaged one if that was encrypted and can be written. Its collations, functions and
    ///     tokenizers are needed if the schema uses them.
    ///   - progress: Called with the progress of the recovery, on the thread that does the work.
    /// - Returns: A report of what was recovered and what was lost.
    /// - Throws: ``StoreError``, with the code `nameTaken` if the name of the new database is taken, `missingFile`,
    ///   `corrupt` if the file holds no page of a database, `keyDoesNotFit` if the key opens none of its pages,
    ///   `missingCollation`, `noSpace`, or `busy` if the file changes meanwhile; `CancellationError`. The new file does
    ///   not exist in these cases.
    @discardableResult
    public static func recover(
        _ database: URL, to recovered: URL, keyProvider: any KeyProvider,
        recoveredKeyProvider: (any KeyProvider)? = nil, template: URL? = nil,
        formats: [CipherSettings] = [CipherSettings()], options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> RecoveryReport {
        try await DetachedThread.cancellable { cancellation in
            try recoverHere(
                database, recovered, keyProvider, recoveredKeyProvider, template, formats,
                checked(options, database, progress, cancellation))
        }
    }

    /// Recovers as ``recover(_:to:keyProvider:recoveredKeyProvider:template:formats:options:progress:)`` does, blocking
    /// the calling thread.
    ///
    /// The cancellation stops the recovery from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as the asynchronous method, and `cancelled` if the recovery was
    ///   canceled in time.
    @available(*, noasync, message: "await recover(_:to:keyProvider:) instead")
    @discardableResult
    public static func recoverBlocking(
        _ database: URL, to recovered: URL, keyProvider: any KeyProvider,
        recoveredKeyProvider: (any KeyProvider)? = nil, template: URL? = nil,
        formats: [CipherSettings] = [CipherSettings()], options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> RecoveryReport {
        try recoverHere(
            database, recovered, keyProvider, recoveredKeyProvider, template, formats,
            checked(options, database, progress, cancellation))
    }

    private static func recoverHere(
        _ database: URL, _ recovered: URL, _ keyProvider: any KeyProvider, _ recoveredKeyProvider: (any KeyProvider)?,
        _ template: URL?, _ formats: [CipherSettings], _ options: ConversionOptions
    ) throws -> RecoveryReport {
        try checkFormats(formats, database)
        var recovery = try DatabaseRecovery(
            of: DatabasePaths(database.requiredPath()), provider: keyProvider, formats: formats,
            to: recovered.requiredPath(), targetProvider: recoveredKeyProvider,
            template: template.map { try $0.requiredPath() }, options: options)
        recovery.keepsFormat = options.format == CipherSettings()
        return try recovery.run()
    }

    // MARK: In place

    /// Replaces a damaged database with what it still contains, encrypted, and keeps the damaged one next to it.
    ///
    /// The new database is created as
    /// ``recover(_:to:keyProvider:recoveredKeyProvider:template:formats:options:progress:)`` creates it. The damaged
    /// one is never changed. It is kept as `NAME-damaged`, or as `NAME-damaged-2` and so on if that name or one of its
    /// sidecar names is taken, with the `-wal` or `-journal` that it had. At every instant, the file at the database's
    /// name is the whole damaged database or the whole recovered one. After a crash it is one of these, and the next
    /// conversion or opening removes everything else that the run created. No process may have the database open. The
    /// database keeps its journal mode, owner and mode.
    ///
    /// A damaged plaintext database stays plaintext under its new name: delete it once you have checked that nothing is
    /// missing. A database without damage stays as it is, plaintext or encrypted, and `wasSound` in the report is
    /// `true`.
    ///
    /// - Parameters:
    ///   - database: The damaged database file.
    ///   - keyProvider: Provides the key of the damaged database if it is encrypted, and of the new one, and may create
    ///     it if there is none.
    ///   - template: A healthy database with the same schema, plaintext or with the same key, for use if the schema is
    ///     lost.
    ///   - formats: Cipher formats that the damaged database may have, as for recovering into a new file.
    ///   - options: The options of the run. Its format is that of the new database; if it is the default, the new
    ///     database has the format of the damaged one if that was encrypted and can be written.
    ///   - progress: Called with the progress of the recovery, on the thread that does the work.
    /// - Returns: A report of what was recovered, what was lost, and the new name of the damaged database.
    /// - Throws: ``StoreError``, with the code `missingFile`, `corrupt` if no table definition can be read,
    ///   `keyDoesNotFit` if the key opens no page, `engineTooOld` if the file's format is newer than the engine's,
    ///   `staleSidecar` if an undamaged file has another database's log or journal beside it, `permission` if the
    ///   folder cannot be written or does not support hard links, `noSpace`, or `busy` if another connection uses the
    ///   file; `CancellationError`. The file is unchanged in these cases.
    @discardableResult
    public static func recover(
        inPlace database: URL, keyProvider: any KeyProvider, template: URL? = nil,
        formats: [CipherSettings] = [CipherSettings()], options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> RecoveryReport {
        try await DetachedThread.cancellable { cancellation in
            try recoverHere(
                database, keyProvider, template, formats, checked(options, database, progress, cancellation))
        }
    }

    /// Recovers as ``recover(inPlace:keyProvider:template:formats:options:progress:)`` does, blocking the calling
    /// thread.
    ///
    /// The cancellation stops the recovery from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as the asynchronous method, and `cancelled` if the recovery was
    ///   canceled in time.
    @available(*, noasync, message: "await recover(inPlace:keyProvider:) instead")
    @discardableResult
    public static func recoverBlocking(
        inPlace database: URL, keyProvider: any KeyProvider, template: URL? = nil,
        formats: [CipherSettings] = [CipherSettings()], options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> RecoveryReport {
        try recoverHere(
            database, keyProvider, template, formats, checked(options, database, progress, cancellation))
    }

    private static func recoverHere(
        _ database: URL, _ keyProvider: any KeyProvider, _ template: URL?, _ formats: [CipherSettings],
        _ options: ConversionOptions
    ) throws -> RecoveryReport {
        try checkFormats(formats, database)
        var recovery = InPlaceRecovery(
            of: try DatabasePaths(database.requiredPath()), provider: keyProvider, formats: formats,
            template: try template.map { try $0.requiredPath() }, options: options)
        recovery.keepsFormat = options.format == CipherSettings()
        return try recovery.runLocked()
    }
}
