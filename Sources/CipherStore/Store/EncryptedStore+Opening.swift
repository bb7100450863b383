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
    /// Opens the database of a configuration, encrypted and up to date, whatever is on the disk.
    ///
    /// If there is no file, a new database is created. A legacy plaintext file is encrypted and replaced in one step by
    /// its proven copy. Then the schema is migrated to the configuration's version. Everything runs on a separate
    /// thread.
    ///
    /// Cancelling the task ends the wait for a key, and an encryption upgrade until the copy takes the original's
    /// place; rows and journal mode are then unchanged. After that the store opens despite the cancellation. A `-wal`
    /// may have been merged into the file and a journal rolled back, as SQLite does at any opening, which changes the
    /// change counter in the file's header.
    ///
    /// - Parameters:
    ///   - configuration: What the app wants the database to be.
    ///   - directory: The directory that holds the file, or is to hold it. It must exist.
    ///   - keyProvider: Provides the key, on a separate thread.
    ///   - options: Timeouts, and the number of readers.
    ///   - progress: Called with how far an encryption upgrade is, on the thread that opens.
    /// - Throws: ``StoreError``; `CancellationError` if the task was cancelled in time.
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

    /// Opens the database as ``open(_:directory:keyProvider:options:progress:)`` does, blocking the calling thread.
    ///
    /// For programs that cannot await. An upgrade of a large file takes seconds, so do not call it on the main thread
    /// of an app. The cancellation ends it from another thread.
    ///
    /// - Throws: ``StoreError``, with `cancelled` if the upgrade was cancelled in time.
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
                .configuration, "maximumReaders is \(options.maximumReaders)", advice: "leave room for one reader")
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
    /// The same for the encryption upgrade.
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
