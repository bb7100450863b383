public import CipherKeyProviders
public import CipherSQLite
public import CipherSystemFiles

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension DatabaseConverter {
    // MARK: Decrypting

    /// Decrypts an encrypted database in place: the way back.
    ///
    /// The file is replaced in one step by its proven plaintext copy. A file that is plaintext already is left as it
    /// is. Cancelling the task ends the run until the copy takes the original's place; the rows are as they were then,
    /// and so is the journal mode. A `-wal` may have been merged into the file, and a journal rolled back, as SQLite
    /// does at any opening; the change counter in the file's header then is another one.
    ///
    /// - Parameters:
    ///   - database: The database file.
    ///   - keyProvider: Provides the key, on another thread.
    ///   - formats: The cipher formats that the file may have, in the order in which they are tried.
    ///   - options: How to run; the format and the backup are ignored.
    ///   - progress: Called with how far the run is, on the thread that decrypts.
    /// - Returns: What was done; of a file that was plaintext before, `alreadyPlaintext`.
    /// - Throws: ``StoreError``, with `missingFile`, with `keyDoesNotFit` if the file has another key or format;
    ///   `CancellationError` if the task was cancelled in time.
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
    /// The cancellation ends the run from another thread.
    ///
    /// - Throws: ``StoreError``, with `cancelled` if the run was cancelled in time.
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

    /// Gives an encrypted database another key or cipher format, in place.
    ///
    /// The file is replaced in one step by its proven copy. At every moment the whole file has the old key or the new one;
    /// after a crash, call again with both. A file that has the new key and format already is left as it is.
    ///
    /// - Parameters:
    ///   - database: The database file.
    ///   - oldKey: Gives the key of the file as it is.
    ///   - newKey: Gives the key that the file is to have, and makes it once the old one has opened the file; `nil` if
    ///     the file is to keep its key and only its format changes.
    ///   - formats: The cipher formats that the file may have, in the order in which they are tried.
    ///   - options: How the run goes; its format is the one that the file is to have. The backup does not count.
    ///   - progress: Called with how far the run is, on the thread that converts.
    /// - Returns: What was done; of a file that had the new key and format before, `alreadyRekeyed`.
    /// - Throws: ``StoreError``, with `missingFile`, with `keyDoesNotFit` if neither key opens the file, with
    ///   `keyUnchanged` if both are equal, with `unexpectedPlaintext` if the file is not encrypted; `CancellationError`
    ///   if the task was cancelled in time.
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
    /// The cancellation ends the run from another thread.
    ///
    /// - Throws: ``StoreError``, with `cancelled` if the run was cancelled in time.
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
