public import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
internal import CipherSystemFiles

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The stores of several accounts on one device: each with its own file, version record and key.
///
/// ```swift
/// let accounts = AccountStores(configuration, directory: directory) { account in
///     .closure { purpose, _ in try keychain.key(of: account, purpose) }
/// }
/// let store = try await accounts.switch(to: "anna")
/// ```
///
/// An account that the device does not have yet is a separate first install, whatever the others are. Each has its own
/// folder in the directory, so that one can be upgraded while others are in use, by this process or another. The
/// folder's name is the account's, with `%` and hexadecimal digits for everything but `a` to `z`, `0` to `9`, `-`, `_`,
/// `@`, `+` and `.`; very long names end in a digest.
public actor AccountStores {
    /// An account that is opening or open.
    private struct Entry {
        let id: Int
        let opening: Task<EncryptedStore, any Error>
        /// The calls that wait for the opening and were not cancelled.
        var waiting = 0
    }

    /// The bytes of an account: two that are equal as characters can be two accounts.
    private typealias Key = [UInt8]

    private let configuration: Configuration
    private let location: AccountLocation
    private let options: EncryptedStore.Options
    private let keyProvider: @Sendable (String) throws -> any KeyProvider
    private var entries: [Key: Entry] = [:]
    /// The accounts that no one may open now.
    private var closings: [Key: Task<Void, any Error>] = [:]
    /// The stores of the accounts that are open, by the number of their opening.
    private var stores: [Int: EncryptedStore] = [:]
    private var isSuspended = false
    private var lastID = 0
    private var isSwitching = false
    private var switches: [CheckedContinuation<Void, Never>] = []

    /// The current account; `nil` before the first switch, after a failed one, and after the account was closed.
    public private(set) var current: String?

    /// Accounts in their own folders.
    ///
    /// - Parameters:
    ///   - configuration: What the app wants each database to be.
    ///   - directory: The directory of the accounts' folders. It must exist.
    ///   - options: Timeouts, and the number of readers of each store.
    ///   - keyProvider: Gives the provider of an account's key.
    public init(
        _ configuration: Configuration, directory: URL, options: EncryptedStore.Options = .init(),
        keyProvider: @escaping @Sendable (_ account: String) throws -> any KeyProvider
    ) {
        self.init(configuration, .folders(in: directory), options, keyProvider)
    }

    /// Accounts whose databases are where the app already keeps them.
    ///
    /// - Parameters:
    ///   - configuration: What the app wants each database to be; its `databaseName` does not count.
    ///   - location: The database file of an account, another one for each. Its folder must exist.
    ///   - options: Timeouts, and the number of readers of each store.
    ///   - keyProvider: Gives the provider of an account's key.
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

    /// Closes the account that was switched to before, and opens another.
    ///
    /// Accounts that were opened with ``open(_:progress:)`` stay open. If the other one cannot be opened, none is
    /// current.
    ///
    /// - Throws: As ``open(_:progress:)``.
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
    ///   - account: The account's name, as the app knows it.
    ///   - progress: Called with how far an encryption upgrade is; not where another call opens the account already.
    /// - Throws: As ``EncryptedStore/open(_:directory:keyProvider:options:progress:)``, and what the app's own closures
    ///   throw; ``StoreError`` with `misuse` if two accounts have one file.
    public func open(
        _ account: String, progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) async throws -> EncryptedStore {
        let key = Key(account.utf8)
        while true {
            if let closing = closings[key] {
                // Whether it succeeded is its caller's to know.
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
                // The last call that waited for that opening was cancelled, and this one came after it.
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
                .misuse, path: store.path, "two accounts use this file", advice: "give each account its own file")
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

    /// Ends an opening for which no one waits who was not cancelled.
    private func giveUp(_ id: Int, _ key: Key) {
        guard let entry = entries[key], entry.id == id else { return }
        entries[key]?.waiting -= 1
        if entry.waiting == 1 { entry.opening.cancel() }
    }

    /// How many calls wait for an opening and were not cancelled.
    package func waiting(for account: String) -> Int { entries[Key(account.utf8)]?.waiting ?? 0 }

    /// Whether the opening of an account was cancelled.
    package func isCancelled(_ account: String) -> Bool { entries[Key(account.utf8)]?.opening.isCancelled == true }

    private func forget(_ id: Int, _ key: Key) {
        stores[id] = nil
        if entries[key]?.id == id { entries[key] = nil }
    }

    // MARK: Closing

    /// Closes an account's store, as ``EncryptedStore/close()`` does; does nothing if it is not open.
    ///
    /// An opening that is under way ends first.
    public func close(_ account: String) async {
        // Only what is done after closing can fail.
        _ = await end(account) {}.result
    }

    /// Closes all accounts.
    public func closeAll() async {
        for key in entries.keys { await close(String(decoding: key, as: UTF8.self)) }
    }

    /// Closes an account and removes its database with everything beside it that belongs to it, and its folder where
    /// nothing else is left there.
    ///
    /// The key stays with its provider; removing it is up to the app. After a crash, call this again.
    ///
    /// - Throws: ``StoreError`` with `busy` if another process has the file open.
    public func remove(_ account: String) async throws {
        let (folder, databaseName) = try location.place(of: account, databaseName: configuration.checkedName)
        let removal = await end(account) { [location, options] in
            guard try FileSystem.exists(folder) else { return }
            try await DetachedThread.run {
                try AccountRemoval(paths: DatabasePaths(folder + "/" + databaseName))
                    .run(timeout: options.upgradeTimeout)
                try location.tidy(folder)
            }
        }
        try await removal.value
    }

    /// Closes an account and runs `body`; until its end no one opens the account.
    private func end(
        _ account: String, _ body: @escaping @Sendable () async throws -> Void
    ) async -> Task<Void, any Error> {
        let key = Key(account.utf8)
        while let closing = closings[key] { _ = await closing.result }
        let entry = entries[key]
        if let current, Key(current.utf8) == key { self.current = nil }
        let closing = Task {
            // Here and not after waiting for this task: whoever waits for it must find it gone.
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
    /// An opening that is under way ends first. Until ``resumeAll()`` no other account is opened: that fails with `suspended`.
    ///
    /// - Parameter limit: As of ``EncryptedStore/suspend(interruptingAfter:)``. Openings that are under way then are cancelled,
    ///   and fail with `suspended`; what a cancellation leaves is told at
    ///   ``EncryptedStore/open(_:directory:keyProvider:options:progress:)``.
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

    /// Serves calls again, as ``EncryptedStore/resume()`` does.
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

    /// Hands over to the next that waits.
    private func endSwitch() {
        guard !switches.isEmpty else {
            isSwitching = false
            return
        }
        switches.removeFirst().resume()
    }
}
