internal import CipherErrors
internal import CipherPlatform
package import CipherSystemFiles

/// Prevents other processes, and other jobs of this process, from inspecting and upgrading the same file.
///
/// Across processes it is a `flock` on the folder's descriptor: the lock is exclusive, ends with the process and leaves
/// nothing behind. A process holds it once for all of its jobs in that folder, and separates the jobs from each other
/// by file. Jobs that follow each other without a gap would lock out every other process, so the lock has turns: when a
/// turn is over, no further job joins, and the lock stays free briefly. A job that a key provider or a hook starts
/// within another job joins in any case, because the other job may wait for it; if it is on the same file, it is
/// refused. POSIX record locks (`fcntl`) are what SQLite itself uses, so they are never used here.
// Unchecked but safe across threads: `folders`, `free` and `files` are accessed only under `lock`.
package final class UpgradeLock: @unchecked Sendable {
    /// How long further jobs may join.
    private let turn: Duration
    /// How long the lock stays free after a turn.
    ///
    /// Other processes try to take it every hundredth of a second.
    private static let gap = Duration.milliseconds(30)

    /// The bytes of a path, because two paths that are equal as characters can be different folders.
    private typealias Name = [UInt8]

    private struct Held {
        let descriptor: Int32
        /// The running jobs.
        var jobs: [EnclosingJobs.Job]
        let turnEnds: ContinuousClock.Instant
    }

    private static let shared = UpgradeLock()
    private let lock = Lock()
    private var folders: [Name: Held] = [:]
    /// The folders whose lock is left to other processes, and until when.
    private var free: [Name: ContinuousClock.Instant] = [:]
    private var files: [Name: EnclosingJobs.Job] = [:]

    package init(turn: Duration = .seconds(1)) {
        self.turn = turn
    }

    /// Runs `body` with the shared lock of this process held.
    ///
    /// - Throws: The same errors as ``withLock(_:timeout:cancellation:_:)`` of an instance.
    package static func withLock<Result>(
        _ paths: DatabasePaths, timeout: Duration, cancellation: UpgradeCancellation? = nil, _ body: () throws -> Result
    ) throws -> Result {
        try shared.withLock(paths, timeout: timeout, cancellation: cancellation, body)
    }

    /// Runs `body` with the shared lock of this process held, and passes it the folder's descriptor.
    ///
    /// A child process to which `body` sends the descriptor holds the lock too, until it ends or closes its duplicate.
    ///
    /// - Throws: The same errors as ``withLock(_:timeout:cancellation:_:)`` of an instance.
    package static func lending<Result>(
        _ paths: DatabasePaths, timeout: Duration, cancellation: UpgradeCancellation, _ body: (Int32) throws -> Result
    ) throws -> Result {
        try shared.withLock(paths, timeout: timeout, cancellation: cancellation) {
            let folder = Name(paths.folder.utf8)
            return try body(shared.lock.withLock { shared.folders[folder]?.descriptor } ?? -1)
        }
    }

    /// Runs `body`, whose jobs in the database's folder join a lock that the parent process lent, and then closes the
    /// descriptor.
    ///
    /// - Parameter descriptor: The descriptor that the parent process sent. No other job of this process may be in that
    ///   folder.
    package static func borrowing<Result>(
        _ descriptor: Int32, of paths: DatabasePaths, _ body: () throws -> Result
    ) rethrows -> Result {
        let job = EnclosingJobs.Job()
        shared.lock.withLock {
            shared.folders[Name(paths.folder.utf8)] = Held(
                descriptor: descriptor, jobs: [job], turnEnds: .now + .seconds(1 << 31))
        }
        defer { shared.release(paths, of: job) }
        return try job.run(body)
    }

    /// Runs `body` with the lock held.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for the lock.
    ///   - cancellation: Stops the waiting.
    /// - Throws: ``StoreError`` with the code `busy` after the timeout, `cancelled`, or `misuse` if a job on the file
    ///   waits for this one. Such a wait is not detected for work that the app's code starts in a task or on a separate
    ///   thread.
    package func withLock<Result>(
        _ paths: DatabasePaths, timeout: Duration, cancellation: UpgradeCancellation? = nil, _ body: () throws -> Result
    ) throws -> Result {
        let job = EnclosingJobs.Job()
        try acquire(paths, for: job, deadline: .now + timeout, cancellation)
        defer { release(paths, of: job) }
        return try job.run(body)
    }

    private func acquire(
        _ paths: DatabasePaths, for job: EnclosingJobs.Job, deadline: ContinuousClock.Instant,
        _ cancellation: UpgradeCancellation?
    ) throws {
        let file = Name(paths.database.utf8)
        try UpgradeCancellation.waking(lock, cancellation) {
            while true {
                if cancellation?.isCancelled == true { throw StoreError.cancelled(paths.database) }
                var pause = deadline
                if let holder = files[file] {
                    if EnclosingJobs.current.waits(holder) { throw waitsForItself(paths) }
                } else {
                    if try join(paths.folder, job) {
                        files[file] = job
                        return
                    }
                    // Another process has the lock, and its release is not announced.
                    pause = min(deadline, .now + .milliseconds(10))
                }
                if !lock.wait(until: pause), .now >= deadline { throw busy(paths) }
            }
        }
    }

    private func join(_ folder: String, _ job: EnclosingJobs.Job) throws -> Bool {
        let (now, name) = (ContinuousClock.now, Name(folder.utf8))
        if let held = folders[name] {
            let enclosing = EnclosingJobs.current
            guard now < held.turnEnds || held.jobs.contains(where: enclosing.contains) else { return false }
            folders[name]?.jobs.append(job)
            return true
        }
        if let end = free[name] {
            guard now >= end else { return false }
            free[name] = nil
        }
        guard let descriptor = try lockFolder(folder) else { return false }
        folders[name] = Held(descriptor: descriptor, jobs: [job], turnEnds: now + turn)
        return true
    }

    private func lockFolder(_ folder: String) throws -> Int32? {
        let descriptor = folder.withSystemPath { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else {
            throw FileSystem.failure("be opened for locking", folder, of: "folder", needs: .readAndWrite)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) != 0 else { return descriptor }
        let reason = errno
        close(descriptor)
        guard reason == EWOULDBLOCK || reason == EINTR else {
            throw FileSystem.failure("be locked", folder, reason, of: "folder")
        }
        return nil
    }

    private func release(_ paths: DatabasePaths, of job: EnclosingJobs.Job) {
        lock.withLock {
            files[Name(paths.database.utf8)] = nil
            let folder = Name(paths.folder.utf8)
            if let held = folders[folder] {
                folders[folder]?.jobs.removeAll { $0 === job }
                if held.jobs.count == 1 {
                    folders[folder] = nil
                    // Closing the last descriptor of this open file description releases the lock.
                    close(held.descriptor)
                    let now = ContinuousClock.now
                    if now >= held.turnEnds { free[folder] = now + Self.gap }
                }
            }
            lock.wakeAll()
        }
    }

    private func waitsForItself(_ paths: DatabasePaths) -> StoreError {
        StoreError(
            .misuse, path: paths.database,
            "a key provider or hook tried to open or convert the database during the operation that called it",
            advice: "in the provider, return only the key; in the hook, use only the connection that is passed to it; "
                + "open the database only after the operation has ended")
    }

    private func busy(_ paths: DatabasePaths) -> StoreError {
        StoreError(
            .busy, path: paths.database,
            "this process or another one is already upgrading a database in this folder",
            advice: "wait until the other upgrade has ended, and then try again")
    }
}
