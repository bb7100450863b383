public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherSystemFiles

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension EncryptedStore {
    /// Replaces a configuration's damaged database with what it still contains, and keeps the damaged one beside it.
    ///
    /// Does what `DatabaseConverter.recover(inPlace:)` does, with the name, the cipher formats, the collations, functions and
    /// tokenizers of the configuration: for an encrypted store whose reads or writes end with the code `corrupt`. Close the
    /// store first. The schema is migrated when the database is opened next. With `encryption.onDamage: recover`, opening does
    /// it by itself where it finds damage.
    ///
    /// - Parameters:
    ///   - configuration: What the app wants the database to be.
    ///   - directory: The directory that holds the file.
    ///   - keyProvider: Gives the key of the database, on another thread.
    ///   - template: A healthy database of the same schema, plaintext or with the same key, where the schema is lost.
    ///   - options: How long to wait.
    ///   - progress: Called with how far the run is, on the thread that works.
    /// - Returns: What was recovered, what is lost, and the name that the damaged database has now.
    /// - Throws: ``StoreError`` as `DatabaseConverter.recover(inPlace:)` does, with `downgrade` or
    ///   `unexpectedPlaintext` for what opening would refuse, and with `encryptionDisabled` if encryption is off;
    ///   `CancellationError`. The file is unchanged then.
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

    /// Recovers as ``recover(_:directory:keyProvider:template:options:progress:)`` does, blocking the calling thread.
    ///
    /// The cancellation ends the run from another thread.
    ///
    /// - Throws: ``StoreError`` as that does, with `cancelled` if the run was cancelled in time.
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
    /// Has what the file still contains take its place, unless opening would refuse that.
    fileprivate func recoverInPlace(template: String?) throws -> RecoveryReport {
        try checkInputs()
        guard configuration.encryption.isEnabled else {
            throw StoreError(
                .encryptionDisabled, path: paths.database,
                "encryption is off in the configuration, but a recovered database is encrypted",
                advice: "turn encryption on", changed: .nothing)
        }
        return try InPlaceRecovery(
            of: paths, provider: provider, formats: configuration.encryption.formats, template: template,
            options: options
        ).runLocked { try checkDecision($0, wasPlaintext: $1.wasPlaintext) }
    }
}
