public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
public import CipherSystemFiles

extension EncryptedStore {
    /// Replaces a configuration's damaged database with its recoverable content, and keeps the damaged file next to it.
    ///
    /// This does what `DatabaseConverter.recover(inPlace:)` does, with the name, cipher formats, collations, functions
    /// and tokenizers of the configuration. Use it for an encrypted store whose reads or writes fail with the code
    /// `corrupt`. Close the store first. The schema is migrated the next time the database is opened. With
    /// `encryption.onDamage: recover`, opening does all this itself if it finds damage.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the database.
    ///   - directory: The directory of the database file.
    ///   - keyProvider: The provider of the database's key, called on another thread.
    ///   - template: An undamaged database with the same schema, plaintext or with the same key, for use if the schema
    ///     is lost.
    ///   - options: The timeouts.
    ///   - progress: A closure that receives the progress of the recovery, on the thread that does the work.
    /// - Returns: A report of what was recovered and what was lost, with the present name of the damaged database.
    /// - Throws: The same errors as `DatabaseConverter.recover(inPlace:)`; also ``StoreError`` with the code
    ///   `downgrade` or `unexpectedPlaintext` for content that opening would refuse, or `encryptionDisabled` if
    ///   encryption is off; `CancellationError`. After an error the file is unchanged.
    @discardableResult
    public static func recover(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, template: URL? = nil,
        options: Options = Options(), progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> RecoveryReport {
        try await DetachedThread.cancellable { cancellation in
            try recoverHere(
                configuration, directory, keyProvider, template, options.upgrade(progress, cancellation))
        }
    }

    /// Recovers as ``recover(_:directory:keyProvider:template:options:progress:)`` does, but blocks the calling thread.
    ///
    /// Use `cancellation` to end the recovery from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as that method, and `cancelled` if the recovery was canceled in
    ///   time.
    @available(*, noasync, message: "await recover(_:directory:keyProvider:template:options:progress:) instead")
    @discardableResult
    public static func recoverBlocking(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, template: URL? = nil,
        options: Options = Options(), progress: (@Sendable (UpgradeProgress) -> Void)? = nil,
        cancellation: UpgradeCancellation? = nil
    ) throws -> RecoveryReport {
        try recoverHere(configuration, directory, keyProvider, template, options.upgrade(progress, cancellation))
    }

    private static func recoverHere(
        _ configuration: Configuration, _ directory: URL, _ keyProvider: any KeyProvider, _ template: URL?,
        _ options: ConversionOptions
    ) throws -> RecoveryReport {
        try StoreOpening(
            configuration: configuration, directory: try directory.requiredPath(), provider: keyProvider,
            options: options
        ).recoverInPlace(template: template.map { try $0.requiredPath() })
    }
}

extension StoreOpening {
    /// Replaces the file with its recoverable content, unless opening would refuse the result.
    fileprivate func recoverInPlace(template: String?) throws -> RecoveryReport {
        try checkInputs()
        guard configuration.encryption.isEnabled else {
            throw StoreError(
                .encryptionDisabled, path: paths.database,
                "encryption is off in the configuration, but recovery always produces an encrypted database",
                advice: "turn encryption on", changed: .nothing)
        }
        var recovery = InPlaceRecovery(
            of: paths, provider: provider, formats: configuration.encryption.formats, template: template,
            options: options)
        // The check refuses a plaintext file that the configuration does not expect.
        recovery.expectsPlaintext = true
        return try recovery.runLocked { try checkDecision($0, wasPlaintext: $1.wasPlaintext) }
    }
}
