internal import CipherErrors
public import CipherKeyProviders
internal import CipherSQLite
public import CipherSystemFiles

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Encrypts, decrypts and checks databases for apps that open them with an SQLite wrapper of their own.
public enum DatabaseConverter {
    /// Encrypts a plaintext database in place.
    ///
    /// Called at each launch, before the wrapper opens the file. A plaintext file is replaced in one step by its proven
    /// copy, which is equal to it in everything but the encryption: the schema, `user_version` and the journal mode are
    /// the app's, and no table is added. A file that is encrypted with the key already is left as it is. If there is
    /// nothing, an encrypted database without tables is made, so that the wrapper needs the key in every case.
    ///
    /// ```swift
    /// try await DatabaseConverter.encrypt(file, keyProvider: keys)
    /// let key = try keys.key(for: .existing, database: file.path).text  // what the wrapper hands to sqlite3_key
    /// ```
    ///
    /// Cancelling the task ends the upgrade until the copy takes the original's place; the rows are as they were then,
    /// and so is the journal mode. A `-wal` may have been merged into the file, and a journal rolled back, as SQLite
    /// does at any opening; the change counter in the file's header then is another one.
    ///
    /// - Parameters:
    ///   - database: The database file. Its directory must exist.
    ///   - keyProvider: Provides the key, on the thread that encrypts.
    ///   - options: The cipher format, which the wrapper's SQLCipher must read, and what else may be chosen.
    ///   - progress: Called with how far the upgrade is, on the thread that encrypts.
    /// - Returns: What was done; of a file that was encrypted before, `alreadyEncrypted`.
    /// - Throws: ``StoreError``, with `keyDoesNotFit` if the file has another key; `CancellationError` if the task was
    ///   cancelled in time.
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
    /// The cancellation ends the upgrade from another thread.
    ///
    /// - Throws: ``StoreError``, with `cancelled` if the upgrade was cancelled in time.
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

    /// The options of one run.
    ///
    /// - Throws: ``StoreError`` with `configuration` for a cipher format that cannot be.
    static func checked(
        _ options: ConversionOptions, _ database: URL, _ progress: (@Sendable (UpgradeProgress) -> Void)?,
        _ cancellation: UpgradeCancellation?
    ) throws -> ConversionOptions {
        try checkFormats([options.format], database)
        guard options.format.compatibility >= 3 else {
            throw StoreError.cipherFormat(
                "format \(options.format.compatibility) cannot be written; only formats 3 and 4 can",
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
                advice: "give at least one format, or omit the list")
        }
        for fault in formats.compactMap({ $0.fault() }) {
            throw StoreError.cipherFormat("\(fault)", path: try database.requiredPath())
        }
    }
}
