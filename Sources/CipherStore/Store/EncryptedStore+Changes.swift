internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

extension EncryptedStore {
    /// Notifies the observations of commits by other processes and other stores of this process.
    ///
    /// An observed store checks when its files change and when it writes. This call is for file systems without change
    /// notifications, such as network file systems, and for a read-only store, which does not check on its own. It
    /// waits for a running write.
    ///
    /// - Throws: ``StoreError`` with the code `closed` after the store was closed; ``DatabaseError``;
    ///   `CancellationError`.
    public func checkForChanges() async throws {
        guard changes.isObserved else { return }
        guard !writer.isStopped || isClosed else { return changes.resume() }
        try await writer.run(.read) { [changes] in try changes.look($0) }
    }

    /// Starts to check for other connections' commits whenever the files change.
    func watchFiles() {
        watch.begin { lookForOthers(beginning: $0) {} }
    }

    /// Notifies observers of other connections' commits after a file has changed.
    ///
    /// A file is written before its commit becomes visible, and nothing signals when the commit does. However, the
    /// other writer holds the lock until then, so this method waits for the lock.
    ///
    /// - Parameter files: A watch to begin now, because the writer has created the log by then.
    private func lookForOthers(beginning files: FileWatch? = nil, _ finished: @escaping @Sendable () -> Void) {
        let look = ConnectionJob(.outside, of: identity) { [changes, path, weak self] connection throws -> Void in
            try connection.execute("BEGIN IMMEDIATE")
            defer { try? connection.execute("ROLLBACK") }
            files?.begin(Self.watchedFiles(path)) { [weak self] finished in
                guard let self else { return finished() }
                lookForOthers(finished)
            }
            try changes.look(connection)
        } completion: { [weak self] result in
            if case .failure(let error) = result, let self {
                if (error as? DatabaseError)?.isBusy == true { return lookForOthers(beginning: files, finished) }
                if let files { watch.renew(files) }
            }
            finished()
        }
        writer.submit(look)
    }

    private static func watchedFiles(_ path: String) -> [String] {
        #if canImport(Darwin)
            // SQLite never locks the log, and every commit of another connection goes into it.
            [path + "-wal"]
        #else
            // Without a log, the database file itself is written.
            [path, path + "-wal"]
        #endif
    }
}

/// The watch on the files of a store.
///
/// It is recreated after a period without connections, because the log is then a different file.
final class StoreWatch: @unchecked Sendable {
    // The properties below are read and written only under `lock`.
    private let lock = Lock()
    private var files = FileWatch()
    private var isBegun = false
    private var isEnded = false

    /// Runs `body` with a watch to begin, unless one has begun already.
    func begin(_ body: (FileWatch) -> Void) {
        let files = lock.withLock { () -> FileWatch? in
            guard !isBegun, !isEnded else { return nil }
            isBegun = true
            return self.files
        }
        if let files { body(files) }
    }

    /// The current watch.
    var current: FileWatch { lock.withLock { files } }

    /// Ends a watch; if it was the current one, another may begin.
    func renew(_ files: FileWatch) {
        files.end()
        lock.withLock {
            guard self.files === files else { return }
            self.files = FileWatch()
            isBegun = false
        }
    }

    /// Ends watching permanently.
    func end() {
        lock.withLock { () -> FileWatch in
            isEnded = true
            return files
        }.end()
    }
}
