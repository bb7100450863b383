package import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

/// The file that the connections of a store are opened to, with its key: a store that had no connection for a while
/// must not continue with another file that has the name by then.
package final class StoreFile: @unchecked Sendable {
    let path: String
    // These are read and written only under `lock`.
    private let lock = Lock()
    /// The key, derived once; `nil` for a plaintext file.
    private var fileKey: FileKey?
    /// `nil` before the first connection.
    private var identity: FileIdentity?
    /// Whether the file may be another one although its number is the same, or have another key or log.
    private var isDoubtful = false

    /// Whether the store itself is putting another file in the place.
    private var isReplacing = false

    package init(_ path: String, _ fileKey: FileKey?) {
        self.path = path
        self.fileKey = fileKey
    }

    /// Has the file looked at before the next connection is opened, for there was none meanwhile.
    func doubt() { lock.withLock { isDoubtful = true } }

    /// Runs `body`, which may put another file in the place, while no connection is open and none is opened.
    ///
    /// - Parameter body: Is given the key, and changes it where the file has another one afterwards.
    package func replacing<Output>(_ body: (inout FileKey?) throws -> Output) throws -> Output {
        var fileKey = lock.withLock {
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
            // Nobody had it open for a while: it is the same file, or another program's.
            case .failure: isDoubtful = true
            }
        }
        return try result.get()
    }

    /// The key for a new connection.
    ///
    /// - Throws: ``StoreError`` with `missingFile` or `replaced` if the name does not lead to the file any more, with
    ///   `keyDoesNotFit` if the file was given another key, and with `staleSidecar` if it was given another log.
    package func key(busyTimeout: Duration) throws -> FileKey? {
        try lock.withLock {
            // A backup asks before its turn, and connects after it: the file that has the name meanwhile is the store's own.
            guard !isReplacing else { return fileKey }
            guard let found = try FileSystem.status(path) else { throw StoreError.missingFile(path) }
            guard identity == nil || identity == found.identity else {
                throw replaced("another file has taken its name")
            }
            if isDoubtful { try look(busyTimeout) }
            identity = found.identity
            isDoubtful = false
            return fileKey
        }
    }

    /// The same for a connection that is opened in no turn of the store's, once the store is not replacing the file.
    ///
    /// - Throws: As the other; ``StoreError`` with `cancelled`.
    package func settledKey(busyTimeout: Duration, _ cancellation: UpgradeCancellation) throws -> FileKey? {
        try UpgradeCancellation.waking(lock, cancellation) {
            while isReplacing {
                if cancellation.isCancelled { throw StoreError.cancelled(path) }
                lock.wait()
            }
        }
        return try key(busyTimeout: busyTimeout)
    }

    /// Reads the file with its key, before a connection that writes could harm it with another one.
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
                // SQLite rolls back once it is opened for writing.
                return
            }
            guard fits != nil else { throw inspector.keyDoesNotFit() }
        case (.missing, _), (.empty, _): throw replaced("the file is empty now")
        case (.plaintext, _): throw replaced("the file is not encrypted any more")
        case (.opaque, nil): throw replaced("the file is encrypted now, or damaged")
        }
    }

    private func replaced(_ detail: String) -> StoreError {
        StoreError(
            .replaced, path: path, "\(detail): another program replaced it while the store was not connected to it",
            advice: "close the store and open it again", changed: .nothing)
    }
}
