public import CipherKeyProviders
public import CipherPlatform
public import CipherSQLite
public import CipherSystemFiles

extension DatabaseConverter {
    // MARK: A shadow proof

    /// Does everything that ``encrypt(_:keyProvider:options:progress:)`` does up to the swap, discards the copy, and
    /// reports the result.
    ///
    /// The database and the files beside it stay unchanged. Other processes may have the database open meanwhile.
    ///
    /// - Parameters:
    ///   - database: The database file.
    ///   - keyProvider: Provides the key as for an encryption, and may create one.
    ///   - options: The options as for the encryption. No backup is made.
    ///   - progress: Called with the progress of the proof, on the thread that does the work.
    /// - Returns: The report that the encryption would return, but with the outcome `shadow`; or `alreadyEncrypted` if
    ///   the file is already encrypted with the key.
    /// - Throws: The same errors as the encryption; also ``StoreError`` with the code `missingFile`, `needsRecovery` if
    ///   the journal of a writer that crashed must be rolled back first, or `busy` if another connection wrote
    ///   meanwhile; `CancellationError`.
    public static func shadowProof(
        of database: URL, keyProvider: any KeyProvider, options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptionReport {
        try await DetachedThread.cancellable { cancellation in
            try shadowProofHere(database, keyProvider, options, progress, cancellation)
        }
    }

    /// Proves as ``shadowProof(of:keyProvider:options:progress:)`` does, blocking the calling thread.
    ///
    /// Use `cancellation` to stop the proof from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as the asynchronous method, and `cancelled` if the proof was
    ///   canceled.
    @available(*, noasync, message: "await shadowProof(of:keyProvider:) instead")
    public static func shadowProofBlocking(
        of database: URL, keyProvider: any KeyProvider, options: ConversionOptions = ConversionOptions(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptionReport {
        try shadowProofHere(database, keyProvider, options, progress, cancellation)
    }

    private static func shadowProofHere(
        _ database: URL, _ keyProvider: any KeyProvider, _ options: ConversionOptions,
        _ progress: (@Sendable (UpgradeProgress) -> Void)?, _ cancellation: UpgradeCancellation?
    ) throws -> EncryptionReport {
        try EncryptionUpgrade(
            path: try database.requiredPath(), provider: keyProvider,
            options: checked(options, database, progress, cancellation)
        ).shadow()
    }

    // MARK: Inspection

    /// Checks every page and the structure of a database, and changes nothing.
    ///
    /// - Parameters:
    ///   - database: The database file, encrypted or plaintext.
    ///   - keyProvider: Provides the key if the file is encrypted, on another thread. It never creates one.
    ///   - formats: The cipher formats that the file may have, in the order in which they are tried.
    ///   - options: How long to wait for other connections and for the key provider; also the schema's collations,
    ///     functions and tokenizers, without which the content of some indexes is not checked. All other options are
    ///     ignored.
    /// - Returns: The result of the check. Faults inside the file are reported as complaints.
    /// - Throws: ``StoreError`` if the file cannot be opened: with the code `missingFile`, `keyDoesNotFit`,
    ///   `staleSidecar`, or `needsRecovery` if the journal of a writer that crashed must be rolled back first;
    ///   `CancellationError`.
    public static func verify(
        _ database: URL, keyProvider: any KeyProvider, formats: [CipherSettings] = [CipherSettings()],
        options: ConversionOptions = ConversionOptions()
    ) async throws -> Verification {
        try await DetachedThread.cancellable { try verifyHere(database, keyProvider, formats, options, $0) }
    }

    /// Checks a database as ``verify(_:keyProvider:formats:options:)`` does, blocking the calling thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as the asynchronous method.
    @available(*, noasync, message: "await verify(_:keyProvider:formats:options:) instead")
    public static func verifyBlocking(
        _ database: URL, keyProvider: any KeyProvider, formats: [CipherSettings] = [CipherSettings()],
        options: ConversionOptions = ConversionOptions()
    ) throws -> Verification {
        try verifyHere(database, keyProvider, formats, options, nil)
    }

    private static func verifyHere(
        _ database: URL, _ keyProvider: any KeyProvider, _ formats: [CipherSettings], _ options: ConversionOptions,
        _ cancellation: UpgradeCancellation?
    ) throws -> Verification {
        try checkFormats(formats, database)
        var options = options
        options.cancellation = cancellation
        return try Verification.run(
            at: DatabasePaths(try database.requiredPath()), provider: options.waiting(for: keyProvider),
            formats: formats, extensions: options.extensions, busyTimeout: options.busyTimeout)
    }

    /// Determines the kind and the state of a database file, and changes nothing.
    ///
    /// - Parameters:
    ///   - database: The database file; it may be missing.
    ///   - keyProvider: Provides the key, on another thread, if the file can be identified only with a key. It never
    ///     creates one. Without a provider, such a file is `opaque`.
    ///   - formats: The cipher formats that the file may have, in the order in which they are tried.
    /// - Throws: ``StoreError`` with the code `keyDoesNotFit` if the key opens the file in none of the formats,
    ///   `corrupt` for a plaintext file that cannot be read, `notAFile` or `permission`; `CancellationError`.
    public static func inspect(
        _ database: URL, keyProvider: (any KeyProvider)? = nil, formats: [CipherSettings] = [CipherSettings()]
    ) async throws -> Inspection {
        try await DetachedThread.cancellable { try inspectHere(database, keyProvider, formats, $0) }
    }

    /// Inspects a file as ``inspect(_:keyProvider:formats:)`` does, blocking the calling thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as the asynchronous method.
    @available(*, noasync, message: "await inspect(_:keyProvider:formats:) instead")
    public static func inspectBlocking(
        _ database: URL, keyProvider: (any KeyProvider)? = nil, formats: [CipherSettings] = [CipherSettings()]
    ) throws -> Inspection {
        try inspectHere(database, keyProvider, formats, nil)
    }

    private static func inspectHere(
        _ database: URL, _ keyProvider: (any KeyProvider)?, _ formats: [CipherSettings],
        _ cancellation: UpgradeCancellation?
    ) throws -> Inspection {
        try checkFormats(formats, database)
        var options = ConversionOptions()
        options.cancellation = cancellation
        return try Inspector(DatabasePaths(try database.requiredPath()))
            .inspect(provider: keyProvider.map(options.waiting), formats: formats)
    }
}
