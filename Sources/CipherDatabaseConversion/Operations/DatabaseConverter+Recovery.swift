public import CipherKeyProviders
public import CipherSQLite
public import CipherSystemFiles

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension DatabaseConverter {
    /// Makes a new, encrypted database of what a damaged one still contains.
    ///
    /// The damaged database, plaintext or encrypted, is read page by page with its log or hot journal, and is never written.
    /// A row comes back into its table with its rowid and values where the table's pages lead to it, and also where they are
    /// lost and the shape of the row and the indexes that name it tell its table. Rows that cannot be told to one table, rows
    /// of free pages and rows that contradict their page are in the table `lost_and_found`, with the reason beside each.
    /// Indexes and full-text indexes are computed anew. Every row is compared with a second reading before the new database
    /// gets its name.
    ///
    /// In a plaintext file nothing tells a value that was damaged in place distinguished from a correct one.
    ///
    /// - Parameters:
    ///   - database: The damaged database file.
    ///   - recovered: Where the new database is to be. Its directory must exist, and no file may have its name.
    ///   - keyProvider: Gives the key of the damaged database where it is encrypted, and of the new one.
    ///   - recoveredKeyProvider: Gives another key for the new database, and may create it.
    ///   - template: A healthy database of the same schema, plaintext or with the key of the damaged one: tells the tables
    ///     apart where the damaged one's own schema is lost.
    ///   - formats: The cipher formats that the damaged database may have, in the order in which they are tried.
    ///   - options: How the run goes; its format is that of the new database, and its collations, functions and tokenizers
    ///     are needed as wherever the schema uses them.
    ///   - progress: Called with how far the recovery is, on the thread that works.
    /// - Returns: What was recovered, and what is lost.
    /// - Throws: ``StoreError``, with `nameTaken` if something has the name of the new database, with `missingFile`,
    ///   with `corrupt` if the file holds no page of a database, with `keyDoesNotFit` if the key opens none of its
    ///   pages, with `missingCollation`, with `noSpace`, with `busy` if the file changes meanwhile;
    ///   `CancellationError`. The new file does not exist then.
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
    /// The cancellation ends the recovery from another thread.
    ///
    /// - Throws: ``StoreError`` as that does, with `cancelled` if the recovery was cancelled in time.
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
        return try DatabaseRecovery(
            of: DatabasePaths(database.requiredPath()), provider: keyProvider, formats: formats,
            to: recovered.requiredPath(), targetProvider: recoveredKeyProvider,
            template: template.map { try $0.requiredPath() }, options: options
        ).run()
    }

    // MARK: In place

    /// Replaces a damaged database with what it still contains, encrypted, and keeps the damaged one beside it.
    ///
    /// The new database is created as
    /// ``recover(_:to:keyProvider:recoveredKeyProvider:template:formats:options:progress:)`` makes it. The damaged one,
    /// which is never written, is kept as `NAME-damaged`, or as `NAME-damaged-2` and so on where something has one of
    /// its names, with the `-wal` or `-journal` that it had. At every instant the file at the database's name is the
    /// whole damaged database or the whole recovered one; a crash leaves either, and what the run made besides goes
    /// with the next conversion or opening. No process may have the database open. It keeps its journal mode, owner and
    /// mode.
    ///
    /// A damaged database that was plaintext stays plaintext under its new name: delete it once nothing of it is missing. A
    /// database in which nothing is damaged stays as it is, plaintext or encrypted, and the report has `wasSound`.
    ///
    /// - Parameters:
    ///   - database: The damaged database file.
    ///   - keyProvider: Gives the key of the damaged database where it is encrypted, and of the new one, and may create
    ///     it where there is none.
    ///   - template: A healthy database of the same schema, plaintext or with the same key, where the schema is lost.
    ///   - formats: The cipher formats that the damaged database may have, in the order in which they are tried.
    ///   - options: How the run goes; its format is that of the new database.
    ///   - progress: Called with how far the recovery is, on the thread that works.
    /// - Returns: What was recovered, what is lost, and the name that the damaged database has now.
    /// - Throws: ``StoreError``, with `missingFile`, with `corrupt` if the definition of no table can be read, with
    ///   `keyDoesNotFit` if the key opens no page, with `engineTooOld` if the file's format is newer than the engine's,
    ///   with `staleSidecar` if a whole file has another database's log or journal beside it, with `permission` if the
    ///   folder cannot be written or has no hard links, with `noSpace`, with `busy` if somebody uses the file;
    ///   `CancellationError`. The file is unchanged then.
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
    /// The cancellation ends the recovery from another thread.
    ///
    /// - Throws: ``StoreError`` as that does, with `cancelled` if the recovery was cancelled in time.
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
        return try InPlaceRecovery(
            of: DatabasePaths(database.requiredPath()), provider: keyProvider, formats: formats,
            template: template.map { try $0.requiredPath() }, options: options
        ).runLocked()
    }
}
