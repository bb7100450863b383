public import CipherKeyProviders
public import CipherPlatform
public import CipherSQLite
public import CipherSystemFiles

extension DatabaseConverter {
    // MARK: Decrypting

    /// Decrypts an encrypted database in place, which undoes an encryption.
    ///
    /// The file is replaced in one step by its proven plaintext copy. A file that is already plaintext is left as it
    /// is. The task can be canceled until the copy takes the original's place. After a cancellation, the rows and the
    /// journal mode are as they were. A `-wal` may have been merged into the file, and a journal rolled back, as SQLite
    /// does whenever it opens a file; the change counter in the file's header is then different.
    ///
    /// - Parameters:
    ///   - database: The database file.
    ///   - keyProvider: Provides the key, on another thread.
    ///   - formats: The cipher formats that the file may have, in the order in which they are tried.
    ///   - options: The options of the run. The format and the backup are ignored.
    ///   - progress: Called with the progress of the run, on the thread that decrypts.
    /// - Returns: A report of what was done; `alreadyPlaintext` if the file was plaintext before.
    /// - Throws: ``StoreError``, with the code `missingFile`, or `keyDoesNotFit` if the file has another key or format;
    ///   `CancellationError` if the task was canceled in time.
    @discardableResult
    public static func decrypt(
        _ database: URL, keyProvider: any KeyProvider, formats: [CipherSettings] = [CipherSettings()],
        options: ConversionOptions = ConversionOptions(), progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await DetachedThread.cancellable { cancellation in
            try decryptHere(database, keyProvider, formats, options, progress, cancellation)
        }
    }

    /// Decrypts a database as ``decrypt(_:keyProvider:formats:options:progress:)`` does, blocking the calling thread.
    ///
    /// The cancellation stops the run from another thread.
    ///
    /// - Throws: ``StoreError``, with the code `cancelled` if the run was canceled in time.
    @available(*, noasync, message: "await decrypt(_:keyProvider:) instead")
    @discardableResult
    public static func decryptBlocking(
        _ database: URL, keyProvider: any KeyProvider, formats: [CipherSettings] = [CipherSettings()],
        options: ConversionOptions = ConversionOptions(), progress: (@Sendable (UpgradeProgress) -> Void)? = nil,
        cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        try decryptHere(database, keyProvider, formats, options, progress, cancellation)
    }

    private static func decryptHere(
        _ database: URL, _ keyProvider: any KeyProvider, _ formats: [CipherSettings], _ options: ConversionOptions,
        _ progress: (@Sendable (UpgradeProgress) -> Void)?, _ cancellation: UpgradeCancellation?
    ) throws -> EncryptionReport {
        try checkFormats(formats, database)
        return try Decryption(
            path: try database.requiredPath(), provider: keyProvider, formats: formats,
            options: checked(options, database, progress, cancellation)
        ).run()
    }

    // MARK: Changing the key

    /// Changes the key or the cipher format of an encrypted database in place.
    ///
    /// The file is replaced in one step by its proven copy. At every moment, either the whole file has the old key or
    /// the whole file has the new one. After a crash, call this method again with both keys. A file that already has
    /// the new key and format is left as it is.
    ///
    /// - Parameters:
    ///   - database: The database file.
    ///   - oldKey: Provides the current key of the file.
    ///   - newKey: Provides the new key of the file, and creates it once the old key has opened the file; `nil` to keep
    ///     the key and change only the format.
    ///   - formats: The cipher formats that the file may have, in the order in which they are tried.
    ///   - options: The options of the run. Its format is the new format of the file. The backup is ignored.
    ///   - progress: Called with the progress of the run, on the thread that converts.
    /// - Returns: A report of what was done; `alreadyRekeyed` if the file had the new key and format before.
    /// - Throws: ``StoreError``, with the code `missingFile`, `keyDoesNotFit` if neither key opens the file,
    ///   `keyUnchanged` if both are equal, or `unexpectedPlaintext` if the file is not encrypted; `CancellationError`
    ///   if the task was canceled in time.
    @discardableResult
    public static func changeKey(
        of database: URL, from oldKey: any KeyProvider, to newKey: (any KeyProvider)?,
        formats: [CipherSettings] = [CipherSettings()], options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await DetachedThread.cancellable { cancellation in
            try changeKeyHere(database, oldKey, newKey, formats, options, progress, cancellation)
        }
    }

    /// Changes the key as ``changeKey(of:from:to:formats:options:progress:)`` does, blocking the calling thread.
    ///
    /// The cancellation stops the run from another thread.
    ///
    /// - Throws: ``StoreError``, with the code `cancelled` if the run was canceled in time.
    @available(*, noasync, message: "await changeKey(of:from:to:) instead")
    @discardableResult
    public static func changeKeyBlocking(
        of database: URL, from oldKey: any KeyProvider, to newKey: (any KeyProvider)?,
        formats: [CipherSettings] = [CipherSettings()], options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        try changeKeyHere(database, oldKey, newKey, formats, options, progress, cancellation)
    }

    private static func changeKeyHere(
        _ database: URL, _ oldKey: any KeyProvider, _ newKey: (any KeyProvider)?, _ formats: [CipherSettings],
        _ options: ConversionOptions, _ progress: (@Sendable (UpgradeProgress) -> Void)?,
        _ cancellation: UpgradeCancellation?
    ) throws -> EncryptionReport {
        try checkFormats(formats, database)
        return try Rekeying(
            at: DatabasePaths(database.requiredPath()), oldKey: oldKey, newKey: newKey, formats: formats,
            newSettings: options.format, options: checked(options, database, progress, cancellation)
        ).run()
    }
}
