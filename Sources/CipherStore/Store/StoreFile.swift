package import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

/// The file to which a store's connections are opened, and its key.
///
/// A store that had no connection for some time must not continue with another file that has taken the name meanwhile.
package final class StoreFile: @unchecked Sendable {
    let path: String
    // The properties below are read and written only under `lock`.
    private let lock = Lock()
    /// The key, derived once; `nil` for a plaintext file.
    private var fileKey: FileKey?
    /// The identity of the file; `nil` before the first connection, and after the store was closed.
    private var identity: FileIdentity? {
        didSet { Self.users.move(from: oldValue, to: identity) }
    }
    /// The stores of this process.
    private static let users = Users()
    /// Whether the file may have been replaced although its inode number is the same, or may have another key or log.
    private var isDoubtful = false

    /// Whether the store itself is replacing the file.
    private var isReplacing = false

    package init(_ path: String, _ fileKey: FileKey?) {
        self.path = path
        self.fileKey = fileKey
    }

    /// Requires the file to be checked before the next connection is opened, because for some time there was no
    /// connection.
    func doubt() { lock.withLock { isDoubtful = true } }

    deinit { Self.users.move(from: identity, to: nil) }

    /// Releases the key and the file, because no connection will be opened any more.
    func forgetKey() { lock.withLock { (fileKey, identity) = (nil, nil) } }

    /// - Throws: ``StoreError`` with the code `busy` if another store of this process has the file open, of which the
    ///   system knows nothing.
    func requireAlone() throws {
        guard let identity = lock.withLock({ identity }), Self.users.count(identity) > 1 else { return }
        throw StoreError.busy(path, "another store of this process has the file open", retry: .afterClosing)
    }

    /// Runs `body`, which may replace the file, while no connection is open and none is opened.
    ///
    /// - Parameters:
    ///   - isHeld: Whether a connection outside the store has had the file and its log open all the time; called if
    ///     `body` throws.
    ///   - body: A closure that receives the key, and must change it if the file has another key afterwards.
    /// - Throws: Any error thrown by `body`; ``StoreError`` with the code `missingFile` or `replaced` if the name no
    ///   longer refers to the file.
    package func replacing<Output>(
        holding isHeld: () -> Bool = { false }, _ body: (inout FileKey?) throws -> Output
    ) throws -> Output {
        var fileKey = try lock.withLock { () -> FileKey? in
            _ = try sameFile()
            isReplacing = true
            return self.fileKey
        }
        let result = Result { try body(&fileKey) }
        lock.withLock {
            isReplacing = false
            lock.wakeAll()
            self.fileKey = fileKey
            switch result {
            case .success: identity = nil
            // If the file was not open for some time, the name may now lead to another program's file. If it was open,
            // its log may be one that only an open connection can read.
            case .failure: isDoubtful = isDoubtful || !isHeld()
            }
        }
        return try result.get()
    }

    /// Returns the key for a new connection.
    ///
    /// - Throws: ``StoreError`` with the code `missingFile` or `replaced` if the path no longer refers to the file,
    ///   `keyDoesNotFit` if the file now has another key, and `staleSidecar` if it now has another log.
    package func key(busyTimeout: Duration) throws -> FileKey? {
        try lock.withLock {
            // A backup requests the key before its turn, and connects after it: the file that has the name meanwhile is
            // the store's own.
            guard !isReplacing else { return fileKey }
            let found = try sameFile()
            if isDoubtful { try look(busyTimeout) }
            identity = found.identity
            isDoubtful = false
            return fileKey
        }
    }

    /// Returns the key for a connection that is opened outside the store's queues, after the file is no longer being
    /// replaced.
    ///
    /// - Throws: The same errors as ``key(busyTimeout:)``; ``StoreError`` with the code `cancelled`.
    package func settledKey(busyTimeout: Duration, _ cancellation: UpgradeCancellation) throws -> FileKey? {
        try UpgradeCancellation.waking(lock, cancellation) {
            while isReplacing {
                if cancellation.isCancelled { throw StoreError.cancelled(path) }
                lock.wait()
            }
        }
        return try key(busyTimeout: busyTimeout)
    }

    /// - Throws: ``StoreError`` with the code `missingFile` or `replaced` if the name no longer refers to the file.
    func requireSame() throws { _ = try lock.withLock { try sameFile() } }

    private func sameFile() throws -> FileSystem.Status {
        guard let found = try FileSystem.status(path) else { throw StoreError.missingFile(path) }
        guard identity == nil || identity == found.identity else {
            throw replaced("the path now refers to another file")
        }
        return found
    }

    /// Reads the file with its key, before a writing connection could damage it by using the wrong key.
    private func look(_ busyTimeout: Duration) throws {
        let inspector = Inspector(try DatabasePaths(path), busyTimeout: busyTimeout)
        let surface = try inspector.surface()
        switch (surface, fileKey) {
        case (.staleSidecar, _): throw inspector.staleSidecar()
        case (.plaintext, nil): return
        case (.opaque(let hasPlaintextHeader), let fileKey?):
            let fits: Void?
            do {
                fits = try inspector.readingEncrypted(
                    key: fileKey.key, settings: fileKey.settings, hasPlaintextHeader: hasPlaintextHeader
                ) { _, _ in }
            } catch let error as StoreError where error.code == .needsRecovery {
                // SQLite rolls back the journal once the file is opened for writing.
                return
            }
            guard fits != nil else { throw inspector.keyDoesNotFit() }
        case (.missing, _), (.empty, _): throw replaced("the file is now empty")
        case (.plaintext, _): throw replaced("the file is no longer encrypted")
        case (.opaque, nil): throw replaced("the file is now encrypted or damaged")
        }
    }

    private func replaced(_ detail: String) -> StoreError {
        StoreError(
            .replaced, path: path,
            "another program replaced the file while the store did not have it open: \(detail)",
            advice: "close the store and open it again", changed: .nothing)
    }
}

/// The numbers of stores that have the same file open.
// Unchecked but safe across threads: `counts` is accessed only under `lock`.
private final class Users: @unchecked Sendable {
    private let lock = Lock()
    private var counts: [FileIdentity: Int] = [:]

    func count(_ identity: FileIdentity) -> Int { lock.withLock { counts[identity] ?? 0 } }

    func move(from old: FileIdentity?, to new: FileIdentity?) {
        guard old != new else { return }
        lock.withLock {
            if let old { counts[old] = counts[old].flatMap { $0 > 1 ? $0 - 1 : nil } }
            if let new { counts[new, default: 0] += 1 }
        }
    }
}
