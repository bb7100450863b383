public import CipherSQLite

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension CipherStore {
    /// Encrypts a plaintext database in place, for an app that opens it with an SQLite wrapper of its own.
    ///
    /// Called at each launch, before the wrapper opens the file. A plaintext file is replaced in one step by its proven
    /// copy, which is equal to it in everything but the encryption: the schema, `user_version` and the journal mode are
    /// the app's, and no table is added. A file that is encrypted with the key already is left as it is. Where there is
    /// nothing, an encrypted database without tables is made, so that the wrapper needs the key in every case.
    ///
    /// ```swift
    /// try await CipherStore.encrypt(file, keyProvider: keys)
    /// let key = try keys.key(for: .existing, database: file.path).text  // what the wrapper hands to sqlite3_key
    /// ```
    ///
    /// Cancelling the task ends the upgrade until the copy takes the original's place; nothing has changed then.
    ///
    /// - Parameters:
    ///   - database: The database file. Its directory must exist.
    ///   - keyProvider: Is asked for the key, on the thread that encrypts.
    ///   - cipherCompatibility: The cipher format, 3 or 4, that the wrapper's SQLCipher reads; by default the newest.
    ///   - keepBackup: Whether the plaintext file is kept beside the encrypted one as `NAME-plaintext`, or as
    ///     `NAME-plaintext-2` and so on where something has that name.
    ///   - maximumAttempts: After how many upgrades that did not end the next throws `repeatedFailure`. The file is still
    ///     plaintext then, and the app can open it as such.
    ///   - collations: The collations that the schema uses, as the app registers them.
    ///   - options: How long to wait for others.
    ///   - progress: Is told how far the upgrade is, on the thread that encrypts.
    /// - Returns: What was done; of a file that was encrypted before, `alreadyEncrypted`.
    /// - Throws: ``StoreError``, with `keyDoesNotFit` where the file has another key; `CancellationError` where the task
    ///   was cancelled in time.
    @discardableResult
    public static func encrypt(
        _ database: URL, keyProvider: any KeyProvider, cipherCompatibility: Int? = nil, keepBackup: Bool = false,
        maximumAttempts: Int = 5, collations: [Collation] = [], options: Options = Options(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await cancellable { cancellation in
            try encryptHere(
                database, keyProvider: keyProvider, cipherCompatibility: cipherCompatibility, keepBackup: keepBackup,
                maximumAttempts: maximumAttempts, collations: collations,
                options: options.upgrade(progress, cancellation))
        }
    }

    /// Encrypts a database as ``encrypt(_:keyProvider:cipherCompatibility:keepBackup:maximumAttempts:collations:options:progress:)``
    /// does, and blocks the thread meanwhile.
    ///
    /// The cancellation ends the upgrade from another thread.
    ///
    /// - Throws: ``StoreError``, with `cancelled` where the upgrade was cancelled in time.
    @available(*, noasync, message: "await encrypt(_:keyProvider:) instead")
    @discardableResult
    public static func encryptBlocking(
        _ database: URL, keyProvider: any KeyProvider, cipherCompatibility: Int? = nil, keepBackup: Bool = false,
        maximumAttempts: Int = 5, collations: [Collation] = [], options: Options = Options(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        try encryptHere(
            database, keyProvider: keyProvider, cipherCompatibility: cipherCompatibility, keepBackup: keepBackup,
            maximumAttempts: maximumAttempts, collations: collations, options: options.upgrade(progress, cancellation))
    }

    private static func encryptHere(
        _ database: URL, keyProvider: any KeyProvider, cipherCompatibility: Int?, keepBackup: Bool,
        maximumAttempts: Int, collations: [Collation], options: EncryptionUpgrade.Options
    ) throws -> EncryptionReport {
        let newest = Engine.current.defaultCompatibility
        let compatibility = cipherCompatibility ?? newest
        guard (3...max(3, newest)).contains(compatibility) else {
            throw StoreError(
                .configuration, path: try path(of: database),
                "cipher format \(compatibility) is not one that this engine writes",
                advice: "use a format from 3 to \(newest), or leave it out")
        }
        var options = options
        options.settings = CipherSettings(compatibility: compatibility)
        options.keepBackup = keepBackup
        options.maximumAttempts = maximumAttempts
        options.collations = collations
        options.createsMissingFile = true
        return try EncryptionUpgrade(path: try path(of: database), provider: keyProvider, options: options).run()
    }
}
