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
    /// - Throws: ``StoreError`` with `closed` after the store was closed; ``DatabaseError``; `CancellationError`.
    public func checkForChanges() async throws {
        guard changes.isObserved else { return }
        guard !writer.isStopped || isClosed else { return changes.resume() }
        try await writer.run(.read) { [changes] in try changes.look($0) }
    }

    /// From now on the commits of others are looked for when the files change.
    func watchFiles() {
        watch.begin { lookForOthers(beginning: $0) {} }
    }

    /// Tells of the commits of others after a file has changed.
    ///
    /// A file is written before its commit can be seen, and nothing is told of that moment. But the other writer has the lock
    /// until then, so it is waited for.
    ///
    /// - Parameter files: Are watched from now on; for the writer has made the log by then.
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
            // SQLite never locks the log, and all that others commit gets into it.
            [path + "-wal"]
        #else
            // Without a log it is the database that is written.
            [path, path + "-wal"]
        #endif
    }
}

/// The watch on the files of a store, which is recreated after a time without connections: the log is another file
/// then.
final class StoreWatch: @unchecked Sendable {
    // These are read and written only under `lock`.
    private let lock = Lock()
    private var files = FileWatch()
    private var isBegun = false
    private var isEnded = false

    /// Runs `body` with a watch that is to begin, unless it has.
    func begin(_ body: (FileWatch) -> Void) {
        let files = lock.withLock { () -> FileWatch? in
            guard !isBegun, !isEnded else { return nil }
            isBegun = true
            return self.files
        }
        if let files { body(files) }
    }

    /// The present watch.
    var current: FileWatch { lock.withLock { files } }

    /// Ends a watch; if it was the present one, another may begin.
    func renew(_ files: FileWatch) {
        files.end()
        lock.withLock {
            guard self.files === files else { return }
            self.files = FileWatch()
            isBegun = false
        }
    }

    /// Ends it for good.
    func end() {
        lock.withLock { () -> FileWatch in
            isEnded = true
            return files
        }.end()
    }
}
