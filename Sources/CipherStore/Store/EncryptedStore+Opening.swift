public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
public import CipherSystemFiles

extension EncryptedStore {
    /// Opens the database of a configuration, and first encrypts and migrates it if necessary.
    ///
    /// If there is no file, a new database is created. A legacy plaintext file is encrypted and replaced in one step by
    /// its verified copy. Then the schema is migrated to the configuration's version. Everything runs on a separate
    /// thread.
    ///
    /// Canceling the task ends the wait for a key, and ends an encryption upgrade at any time before the copy replaces
    /// the original; rows and journal mode are then unchanged. After the copy has replaced the original, the store
    /// opens despite the cancellation. A `-wal` may have been merged into the file and a journal rolled back, as SQLite
    /// does whenever it opens a database; this changes the change counter in the file's header.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the database.
    ///   - directory: The directory of the database file. It must exist.
    ///   - keyProvider: The provider of the key, called on a separate thread.
    ///   - options: Timeouts, and the number of readers.
    ///   - progress: A closure that receives the progress of an encryption upgrade, on the thread that opens.
    /// - Throws: ``StoreError``; `CancellationError` if the task was canceled in time.
    public static func open(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptedStore {
        try await open(
            configuration, folder: try directory.requiredPath(), keyProvider: keyProvider, options: options,
            progress: progress)
    }

    static func open(
        _ configuration: Configuration, folder: String, keyProvider: any KeyProvider, options: Options,
        progress: (@Sendable (UpgradeProgress) -> Void)?
    ) async throws -> EncryptedStore {
        try await DetachedThread.cancellable { cancellation in
            try openHere(
                configuration, folder: folder, keyProvider: keyProvider, options: options, progress: progress,
                cancellation: cancellation)
        }
    }

    /// Opens the database as ``open(_:directory:keyProvider:options:progress:)`` does, but blocks the calling thread.
    ///
    /// This is for programs that cannot await. An upgrade of a large file takes seconds, so do not call this on the
    /// main thread of an app. Use `cancellation` to end it from another thread.
    ///
    /// - Throws: ``StoreError``, with the code `cancelled` if the upgrade was canceled in time.
    @available(*, noasync, message: "await open(_:directory:keyProvider:options:progress:) instead")
    public static func openBlocking(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options(),
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil, cancellation: UpgradeCancellation? = nil
    ) throws -> EncryptedStore {
        try openHere(
            configuration, folder: try directory.requiredPath(), keyProvider: keyProvider, options: options,
            progress: progress, cancellation: cancellation)
    }

    private static func openHere(
        _ configuration: Configuration, folder: String, keyProvider: any KeyProvider, options: Options,
        progress: (@Sendable (UpgradeProgress) -> Void)?, cancellation: UpgradeCancellation?
    ) throws -> EncryptedStore {
        guard options.maximumReaders > 0 else {
            throw StoreError(
                .configuration, "maximumReaders is \(options.maximumReaders)",
                advice: "set maximumReaders to 1 or more")
        }
        let events = EventLog(database: folder + "/" + configuration.databaseName, tell: options.events)
        return try events.opening {
            var opening = try StoreOpening(
                configuration: configuration, directory: folder, provider: keyProvider,
                options: options.upgrade(events.progress(progress), cancellation))
            opening.mayEncryptLater = configuration.encryption.when == .whileOpen
            return try opening.run { opened in
                var connections = StoreConnections(
                    path: opened.path, fileKey: opened.fileKey, extensions: configuration.extensions,
                    columnForms: configuration.columnForms, busyTimeout: options.busyTimeout)
                connections.events = EventLog(database: opened.path, tell: options.events)
                let store = try EncryptedStore(
                    connections, maximumReaders: options.maximumReaders, report: opened.report,
                    isConverted: opened.isEncryptedLater)
                store.beginConversion(opening.provider, opening.options, opened.logKeeper)
                return store
            }
        } report: {
            $0.report
        }
    }
}

extension EncryptedStore.Options {
    /// Returns the corresponding options for the encryption upgrade.
    func upgrade(
        _ progress: (@Sendable (UpgradeProgress) -> Void)?, _ cancellation: UpgradeCancellation?
    ) -> ConversionOptions {
        var upgrade = ConversionOptions()
        upgrade.busyTimeout = busyTimeout
        upgrade.upgradeTimeout = upgradeTimeout
        upgrade.keyTimeout = keyTimeout
        upgrade.progress = progress
        upgrade.cancellation = cancellation
        return upgrade
    }
}
