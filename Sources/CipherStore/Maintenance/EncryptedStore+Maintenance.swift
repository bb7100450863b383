internal import CipherDatabaseConversion
public import CipherHistory
public import CipherKeyProviders
public import CipherPlatform
internal import CipherSystemFiles

/// The operations behind the command line's `plan`, `validate`, `history`, `baseline` and `repair`. None of them needs
/// an open store.
extension EncryptedStore {
    // MARK: Planning

    /// Plans what ``open(_:directory:keyProvider:options:progress:)`` would do, without changing anything.
    ///
    /// The migration runs on the real rows with every change kept in memory, so anything that opening would refuse is
    /// refused here too. Conditions that can change at any time are not checked: free space, permissions, locks, and
    /// pages that only a conversion reads. If there is no key yet, a note in the plan states this: opening requests a
    /// key from the provider, which may create one.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the database.
    ///   - directory: The directory of the database file; the file need not exist yet.
    ///   - keyProvider: The provider of the key that opening needs, called on another thread; it is never called to
    ///     create a key.
    ///   - options: The timeouts; only the wait for the key provider applies.
    ///   - rehearsalLimit: The maximum number of bytes that the migration may change in memory; with 0 the migration is
    ///     not run.
    /// - Throws: The errors with which opening refuses a file; ``StoreError`` with the code `needsRecovery` if the
    ///   journal of a crashed writer must be rolled back first, or `busy` if other connections keep writing;
    ///   `CancellationError`.
    public static func plan(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options(),
        rehearsalLimit: Int = 256 << 20
    ) async throws -> StorePlan {
        try await maintain(configuration, directory, keyProvider, options) {
            try $0.plan(rehearsalLimit: rehearsalLimit)
        }
    }

    /// Plans as ``plan(_:directory:keyProvider:options:rehearsalLimit:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as that method.
    @available(*, noasync, message: "await plan(_:directory:keyProvider:options:rehearsalLimit:) instead")
    public static func planBlocking(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options(),
        rehearsalLimit: Int = 256 << 20
    ) throws -> StorePlan {
        try opening(configuration, directory, keyProvider, options).plan(rehearsalLimit: rehearsalLimit)
    }

    // MARK: Reading the record

    /// Compares a database's schema with the one recorded in its history, without changing anything.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the database.
    ///   - directory: The directory of the database file.
    ///   - keyProvider: The provider of the key if the file is encrypted, called on another thread; it is never called
    ///     to create a key.
    ///   - options: The timeouts; only the wait for the key provider applies.
    /// - Throws: ``StoreError`` if the file cannot be read; its code is `migration` if no schema is recorded;
    ///   `CancellationError`.
    public static func validate(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options()
    ) async throws -> SchemaValidation {
        try await maintain(configuration, directory, keyProvider, options) { try $0.validate() }
    }

    /// Validates as ``validate(_:directory:keyProvider:options:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as that method.
    @available(*, noasync, message: "await validate(_:directory:keyProvider:options:) instead")
    public static func validateBlocking(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options()
    ) throws -> SchemaValidation {
        try opening(configuration, directory, keyProvider, options).validate()
    }

    /// Reads what was done to a database and what is pending, without changing anything.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the database.
    ///   - directory: The directory of the database file.
    ///   - keyProvider: The provider of the key if the file is encrypted, called on another thread; it is never called
    ///     to create a key.
    ///   - options: The timeouts; only the wait for the key provider applies.
    /// - Throws: ``StoreError`` if the file cannot be read; `CancellationError`.
    public static func history(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options()
    ) async throws -> StoreHistory {
        try await maintain(configuration, directory, keyProvider, options) { try $0.history() }
    }

    /// Reads as ``history(_:directory:keyProvider:options:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as that method.
    @available(*, noasync, message: "await history(_:directory:keyProvider:options:) instead")
    public static func historyBlocking(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options()
    ) throws -> StoreHistory {
        try opening(configuration, directory, keyProvider, options).history()
    }

    // MARK: Writing the record

    /// Declares that a database's schema is that of a version, without running anything.
    ///
    /// Use this for a database that already has its schema but whose version CipherStore has not recorded. Later
    /// migrations start from that version.
    ///
    /// - Parameters:
    ///   - version: The version; the configuration's own by default.
    ///   - configuration: The configuration of the database.
    ///   - directory: The directory of the database file.
    ///   - keyProvider: The provider of the key if the file is encrypted, called on another thread; it is never called
    ///     to create a key.
    ///   - options: The timeouts.
    /// - Throws: The errors with which opening refuses a file; ``StoreError`` with the code `missingFile`, `migration`
    ///   if a version is already recorded, `configuration` for a version later than the configuration's, or
    ///   `unexpectedPlaintext` if the file must be encrypted first; `CancellationError`. After an error no row has
    ///   changed; the journal of a crashed writer may have been rolled back and a `-wal` merged into the file, as
    ///   SQLite does whenever it opens a database.
    @discardableResult
    public static func baseline(
        at version: SchemaVersion? = nil, _ configuration: Configuration, directory: URL,
        keyProvider: any KeyProvider, options: Options = Options()
    ) async throws -> HistoryChange {
        try await maintain(configuration, directory, keyProvider, options) { try $0.baseline(at: version) }
    }

    /// Declares as ``baseline(at:_:directory:keyProvider:options:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as that method.
    @available(*, noasync, message: "await baseline(at:_:directory:keyProvider:options:) instead")
    @discardableResult
    public static func baselineBlocking(
        at version: SchemaVersion? = nil, _ configuration: Configuration, directory: URL,
        keyProvider: any KeyProvider, options: Options = Options()
    ) throws -> HistoryChange {
        try opening(configuration, directory, keyProvider, options).baseline(at: version)
    }

    /// Records the present schema and steps after intended drift, and clears failures of backfills.
    ///
    /// Writes nothing if there is nothing to repair.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the database.
    ///   - directory: The directory of the database file.
    ///   - keyProvider: The provider of the key if the file is encrypted, called on another thread; it is never called
    ///     to create a key.
    ///   - options: The timeouts.
    /// - Throws: The errors with which opening refuses a file; ``StoreError`` with the code `missingFile`, `migration`
    ///   if no version is recorded, or `unexpectedPlaintext` if the file must be encrypted first; `CancellationError`.
    ///   After an error no row has changed; the journal of a crashed writer may have been rolled back and a `-wal`
    ///   merged into the file, as SQLite does whenever it opens a database.
    @discardableResult
    public static func repair(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options()
    ) async throws -> HistoryChange {
        try await maintain(configuration, directory, keyProvider, options) { try $0.repair() }
    }

    /// Repairs as ``repair(_:directory:keyProvider:options:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as that method.
    @available(*, noasync, message: "await repair(_:directory:keyProvider:options:) instead")
    @discardableResult
    public static func repairBlocking(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options()
    ) throws -> HistoryChange {
        try opening(configuration, directory, keyProvider, options).repair()
    }

    // MARK: Running

    private static func maintain<Output: Sendable>(
        _ configuration: Configuration, _ directory: URL, _ keyProvider: any KeyProvider, _ options: Options,
        _ body: @escaping @Sendable (StoreOpening) throws -> Output
    ) async throws -> Output {
        try await DetachedThread.cancellable { cancellation in
            try body(opening(configuration, directory, keyProvider, options, cancellation))
        }
    }

    private static func opening(
        _ configuration: Configuration, _ directory: URL, _ keyProvider: any KeyProvider, _ options: Options,
        _ cancellation: UpgradeCancellation? = nil
    ) throws -> StoreOpening {
        var opening = try StoreOpening(
            configuration: configuration, directory: try directory.requiredPath(), provider: keyProvider,
            options: options.upgrade(nil, cancellation))
        opening.mayEncryptLater = configuration.encryption.when == .whileOpen
        return opening
    }
}
