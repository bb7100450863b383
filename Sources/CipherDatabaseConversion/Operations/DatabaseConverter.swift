internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
internal import CipherSQLite
public import CipherSystemFiles

/// Encrypts, decrypts and checks databases for apps that open them with their own SQLite wrapper.
public enum DatabaseConverter {
    /// Encrypts a plaintext database in place.
    ///
    /// Call this method at each launch, before the wrapper opens the file. A plaintext file is replaced in one step by
    /// its proven copy, which is equal to it in everything but the encryption: the schema, `user_version` and the
    /// journal mode are the app's, and no table is added. A file that is already encrypted with the key is left as it
    /// is. If there is no file, an encrypted database without tables is created, so that the wrapper always needs the
    /// key.
    ///
    /// ```swift
    /// try await DatabaseConverter.encrypt(file, keyProvider: keys)
    /// let key = try keys.key(for: .existing, database: file.path).text  // what the wrapper hands to sqlite3_key
    /// ```
    ///
    /// The task can be canceled until the copy takes the original's place. After a cancellation, the rows and the
    /// journal mode are as they were. A `-wal` may have been merged into the file, and a journal rolled back, as SQLite
    /// does whenever it opens a file; the change counter in the file's header is then different.
    ///
    /// - Parameters:
    ///   - database: The database file. Its directory must exist.
    ///   - keyProvider: Provides the key, on the thread that encrypts.
    ///   - options: The options of the run, including the cipher format, which the wrapper's SQLCipher must be able to
    ///     read.
    ///   - progress: Called with the progress of the upgrade, on the thread that encrypts.
    /// - Returns: A report of what was done; `alreadyEncrypted` if the file was encrypted before.
    /// - Throws: ``StoreError``, with the code `keyDoesNotFit` if the file has another key; `CancellationError` if the
    ///   task was canceled in time.
    @discardableResult
    public static func encrypt(
        _ database: URL, keyProvider: any KeyProvider, options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await DetachedThread.cancellable { cancellation in
            try encryptHere(database, keyProvider, options, progress, cancellation)
        }
    }

    /// Encrypts a database as ``encrypt(_:keyProvider:options:progress:)`` does, blocking the calling thread.
    ///
    /// Use `cancellation` to stop the upgrade from another thread.
    ///
    /// - Throws: ``StoreError``, with the code `cancelled` if the upgrade was canceled in time.
    @available(*, noasync, message: "await encrypt(_:keyProvider:) instead")
    @discardableResult
    public static func encryptBlocking(
        _ database: URL, keyProvider: any KeyProvider, options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        try encryptHere(database, keyProvider, options, progress, cancellation)
    }

    private static func encryptHere(
        _ database: URL, _ keyProvider: any KeyProvider, _ options: ConversionOptions,
        _ progress: (@Sendable (UpgradeProgress) -> Void)?, _ cancellation: UpgradeCancellation?
    ) throws -> EncryptionReport {
        var options = try checked(options, database, progress, cancellation)
        options.createsMissingFile = true
        return try EncryptionUpgrade(path: try database.requiredPath(), provider: keyProvider, options: options).run()
    }

    /// Returns the checked options of one run.
    ///
    /// - Throws: ``StoreError`` with the code `configuration` for an invalid cipher format or one that cannot be
    ///   written.
    static func checked(
        _ options: ConversionOptions, _ database: URL, _ progress: (@Sendable (UpgradeProgress) -> Void)?,
        _ cancellation: UpgradeCancellation?
    ) throws -> ConversionOptions {
        try checkFormats([options.format], database)
        guard options.format.traits.isWritten else {
            throw StoreError.cipherFormat(
                "files can be written only in formats 3 and 4, not in format \(options.format.compatibility)",
                path: try database.requiredPath())
        }
        var options = options
        options.progress = progress
        options.cancellation = cancellation
        return options
    }

    static func checkFormats(_ formats: [CipherSettings], _ database: URL) throws {
        guard !formats.isEmpty else {
            throw StoreError(
                .configuration, path: try database.requiredPath(), "the list of cipher formats to try is empty",
                advice: "specify at least one format, or omit the list")
        }
        for fault in formats.compactMap({ $0.fault() }) {
            throw StoreError.cipherFormat("\(fault)", path: try database.requiredPath())
        }
    }
}
