public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
internal import CipherSystemFiles

/// The stores of several accounts on one device: each with its own file, version record and key.
///
/// ```swift
/// let accounts = AccountStores(configuration, directory: directory) { account in
///     .closure { purpose, _ in try keychain.key(of: account, purpose) }
/// }
/// let store = try await accounts.switch(to: "anna")
/// ```
///
/// An account that is new to the device is a separate fresh install, whatever the state of the other accounts. Each
/// account has its own folder in the directory, so one account can be upgraded while other accounts are in use, by this
/// process or another process. The folder's name is the account's name, with `%` and hexadecimal digits in place of
/// everything except `a` to `z`, `0` to `9`, `-`, `_`, `@`, `+` and `.`; very long names end in a digest.
public actor AccountStores {
    /// An account that is opening or open.
    private struct Entry {
        let id: Int
        let opening: Task<EncryptedStore, any Error>
        /// The number of calls that wait for the opening and were not canceled.
        var waiting = 0
    }

    /// The UTF-8 bytes of an account: strings that compare as equal can be different accounts.
    private typealias Key = [UInt8]

    private let configuration: Configuration
    private let location: AccountLocation
    private let options: EncryptedStore.Options
    private let keyProvider: @Sendable (String) throws -> any KeyProvider
    private var entries: [Key: Entry] = [:]
    /// The accounts that must not be opened now.
    private var closings: [Key: Task<Void, any Error>] = [:]
    /// The stores of the open accounts, keyed by the IDs of their entries.
    private var stores: [Int: EncryptedStore] = [:]
    private var isSuspended = false
    private var lastID = 0
    private var isSwitching = false
    private var switches: [CheckedContinuation<Void, Never>] = []

    /// The current account; `nil` before the first switch, after a failed one, and after the account was closed.
    public private(set) var current: String?

    /// Creates the stores of accounts that each have their own folder.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of each database.
    ///   - directory: The directory of the accounts' folders. It must exist.
    ///   - options: Timeouts, and the number of readers of each store.
    ///   - keyProvider: A closure that returns the key provider of an account.
    public init(
        _ configuration: Configuration, directory: URL, options: EncryptedStore.Options = .init(),
        keyProvider: @escaping @Sendable (_ account: String) throws -> any KeyProvider
    ) {
        self.init(configuration, .folders(in: directory), options, keyProvider)
    }

    /// Creates the stores of accounts whose databases are where the app already keeps them.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of each database; its `databaseName` is ignored.
    ///   - location: A closure that returns the database file of an account, different for each account. The file's
    ///     folder must exist, and neither its name nor, for a link, the name of its target may be reserved for a file
    ///     of another database, such as `app.db-plaintext`.
    ///   - options: Timeouts, and the number of readers of each store.
    ///   - keyProvider: A closure that returns the key provider of an account.
    public init(
        _ configuration: Configuration, location: @escaping @Sendable (_ account: String) throws -> URL,
        options: EncryptedStore.Options = .init(),
        keyProvider: @escaping @Sendable (_ account: String) throws -> any KeyProvider
    ) {
        self.init(configuration, .custom(location), options, keyProvider)
    }

    private init(
        _ configuration: Configuration, _ location: AccountLocation, _ options: EncryptedStore.Options,
        _ keyProvider: @escaping @Sendable (String) throws -> any KeyProvider
    ) {
        self.configuration = configuration
        self.location = location
        self.options = options
        self.keyProvider = keyProvider
    }

    // MARK: Opening

    /// Closes the account that was previously switched to, and opens another account.
    ///
    /// Accounts that were opened with ``open(_:progress:)`` stay open. If the new account cannot be opened, no account
    /// is current.
    ///
    /// - Throws: The same errors as ``open(_:progress:)``.
    public func `switch`(
        to account: String, progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptedStore {
        await beginSwitch()
        defer { endSwitch() }
        try Task.checkCancellation()
        try checkAwake()
        if let current, Key(current.utf8) != Key(account.utf8) { await close(current) }
        current = nil
        let store = try await open(account, progress: progress)
        current = account
        return store
    }

    /// Opens an account in addition to those that are open, or returns its store if it is open.
    ///
    /// - Parameters:
    ///   - account: The account's name, as the app uses it.
    ///   - progress: A closure that receives the progress of an encryption upgrade; not called if another call is
    ///     already opening the account.
    /// - Throws: The same errors as ``EncryptedStore/open(_:directory:keyProvider:options:progress:)``, and any error
    ///   of the app's own closures; ``StoreError`` with the code `misuse` if two accounts have the same file, or if
    ///   the file's name is reserved for a file of another database.
    public func open(
        _ account: String, progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptedStore {
        let key = Key(account.utf8)
        while true {
            if let closing = closings[key] {
                // Only the caller that closes needs to know whether the closing succeeded.
                _ = await closing.result
                continue
            }
            let entry = try entries[key] ?? begin(account, progress)
            do {
                let store = try await wait(for: entry, key)
                if !store.isClosed { return store }
                forget(entry.id, key)
            } catch let error as CancellationError {
                forget(entry.id, key)
                // The last call that waited for that opening was canceled, and this call began after that.
                if Task.isCancelled { throw error }
            } catch {
                forget(entry.id, key)
                throw error
            }
        }
    }

    private func begin(_ account: String, _ progress: (@Sendable (UpgradeProgress) -> Void)?) throws -> Entry {
        try checkAwake()
        let (folder, databaseName) = try location.place(of: account, databaseName: configuration.checkedName)
        let provider = try keyProvider(account)
        try location.prepare(folder)
        lastID += 1
        let id = lastID
        var configuration = configuration
        configuration.databaseName = databaseName
        configuration.sharesFolder = !location.separatesAccounts
        let entry = Entry(
            id: id,
            opening: Task { [configuration, options] in
                let store = try await EncryptedStore.open(
                    configuration, folder: folder, keyProvider: provider, options: options, progress: progress)
                try await self.claim(store, id)
                return store
            })
        entries[Key(account.utf8)] = entry
        return entry
    }

    private func claim(_ store: EncryptedStore, _ id: Int) async throws {
        guard !stores.values.contains(where: { store.path.isSameName(as: $0.path) }) else {
            await store.close()
            throw StoreError(
                .misuse, path: store.path, "two accounts use this file", advice: "use a separate file for each account")
        }
        stores[id] = store
        if isSuspended { store.beginSuspension(nil) }
    }

    private func wait(for entry: Entry, _ key: Key) async throws -> EncryptedStore {
        entries[key]?.waiting += 1
        return try await withTaskCancellationHandler {
            try await entry.opening.value
        } onCancel: {
            Task { await self.giveUp(entry.id, key) }
        }
    }

    /// Cancels an opening once every call that waits for it has been canceled.
    private func giveUp(_ id: Int, _ key: Key) {
        guard let entry = entries[key], entry.id == id else { return }
        entries[key]?.waiting -= 1
        if entry.waiting == 1 { entry.opening.cancel() }
    }

    /// Returns the number of calls that wait for an opening and were not canceled.
    package func waiting(for account: String) -> Int { entries[Key(account.utf8)]?.waiting ?? 0 }

    /// Returns whether the opening of an account was canceled.
    package func isCancelled(_ account: String) -> Bool { entries[Key(account.utf8)]?.opening.isCancelled == true }

    private func forget(_ id: Int, _ key: Key) {
        stores[id] = nil
        if entries[key]?.id == id { entries[key] = nil }
    }

    // MARK: Closing

    /// Closes an account's store, as ``EncryptedStore/close()`` does; does nothing if it is not open.
    ///
    /// An opening in progress finishes first.
    public func close(_ account: String) async {
        // Closing itself cannot fail, only an action after it.
        _ = await end(account) {}.result
    }

    /// Closes all accounts.
    public func closeAll() async {
        for key in entries.keys { await close(String(decoding: key, as: UTF8.self)) }
    }

    /// Closes an account and removes its database with every file that belongs to it.
    ///
    /// These include backups, kept damaged originals, and the copies of interrupted conversions and upgrades.
    /// The account's folder is then also removed if it is empty.
    ///
    /// The key stays with its provider; removing it is up to the app. After a crash, call this again.
    ///
    /// - Throws: ``StoreError`` with the code `busy` if another process has the file open, or `misuse` if the account's
    ///   file name is reserved for a file of another database; `nameTaken`, after the removal, if a plaintext file whose
    ///   path is in the error may be the copy of an interrupted upgrade of this account, or another account's database;
    ///   any error of the app's own closures.
    public func remove(_ account: String) async throws {
        let (folder, databaseName) = try location.place(of: account, databaseName: configuration.checkedName)
        let removal = await end(account) { [location, options, configuration] in
            guard try FileSystem.exists(folder) else { return }
            try await DetachedThread.run {
                let paths = try DatabasePaths(folder + "/" + databaseName)
                var configuration = configuration
                configuration.sharesFolder = !location.separatesAccounts
                let interrupted = try configuration.interruptedCopy(paths, busyTimeout: options.busyTimeout)
                try AccountRemoval(
                    paths: paths, interruptedCopy: interrupted?.sharesFolder == false ? interrupted?.copy : nil
                ).run(timeout: options.upgradeTimeout)
                try location.tidy(folder)
                guard let interrupted, try interrupted.sharesFolder && interrupted.mayBeCopy() else { return }
                throw StoreError(
                    .nameTaken, path: interrupted.copy.database,
                    "the account's database was removed, but this file may contain the account's rows in plaintext: "
                        + "it may be a copy left by the app's own upgrade, or another account's database",
                    advice: "delete this file if it belongs to the removed account")
            }
        }
        try await removal.value
    }

    /// Closes an account and runs `body`; the account cannot be opened until `body` ends.
    private func end(
        _ account: String, _ body: @escaping @Sendable () async throws -> Void
    ) async -> Task<Void, any Error> {
        let key = Key(account.utf8)
        while let closing = closings[key] { _ = await closing.result }
        let entry = entries[key]
        if let current, Key(current.utf8) == key { self.current = nil }
        let closing = Task {
            // Done here and not after waiting for this task, because callers that wait for the task must find the entry
            // removed.
            defer { closings[key] = nil }
            if let entry {
                if case .success(let store) = await entry.opening.result { await store.close() }
                forget(entry.id, key)
            }
            try await body()
        }
        closings[key] = closing
        return closing
    }

    // MARK: Suspension

    /// Suspends the stores of all accounts, as ``EncryptedStore/suspend(interruptingAfter:)`` does.
    ///
    /// An opening in progress finishes first. Until ``resumeAll()``, opening another account fails with `suspended`.
    ///
    /// - Parameter limit: The limit of ``EncryptedStore/suspend(interruptingAfter:)``. Openings still in progress at
    ///   the limit are canceled, and fail with `suspended`;
    ///   ``EncryptedStore/open(_:directory:keyProvider:options:progress:)`` describes the state after a cancellation.
    public func suspendAll(interruptingAfter limit: Duration? = nil) async {
        isSuspended = true
        for store in stores.values { store.beginSuspension(limit) }
        let openings = entries.values.map(\.opening)
        let endings = closings.values.map { $0 }
        let cancelling = Task {
            guard let limit else { return }
            try await Task.sleep(for: limit)
            for opening in openings { opening.cancel() }
        }
        for opening in openings {
            if case .success(let store) = await opening.result { await store.waitUntilSuspended() }
        }
        for ending in endings { _ = await ending.result }
        cancelling.cancel()
    }

    /// Accepts calls again, as ``EncryptedStore/resume()`` does.
    public func resumeAll() {
        isSuspended = false
        for store in stores.values { store.resume() }
    }

    private func checkAwake() throws {
        guard isSuspended else { return }
        throw StoreError(
            .suspended, "the stores of all accounts are suspended", advice: "call resumeAll() first", changed: .nothing)
    }

    // MARK: One switch at a time

    private func beginSwitch() async {
        guard isSwitching else {
            isSwitching = true
            return
        }
        await withCheckedContinuation { switches.append($0) }
    }

    /// Lets the next waiting switch begin.
    private func endSwitch() {
        guard !switches.isEmpty else {
            isSwitching = false
            return
        }
        switches.removeFirst().resume()
    }
}
