internal import CipherErrors
internal import CipherPlatform
package import CipherSQLite
package import CipherSystemFiles

/// The file that the copy replaces, locked so that no other connection can read or write it any more.
///
/// A connection that has the file open when it loses its name continues to use the names of the new file's journal and
/// log. It would roll back that journal into the old file and delete it, or copy that log into the old file and mark it
/// as copied. SQLite looks for both before it reads the first page, so nothing written there can prevent this. A lock
/// can.
package final class ReplacedFile {
    private enum Hold {
        /// No other process or connection has the file open.
        case lease(LeasedFile)
        /// It is unknown, for this reason, whether another process has the file open.
        case lock(DatabaseFile, reason: String)
    }

    private let paths: DatabasePaths
    private let identity: OriginalFile
    private let hold: Hold
    private let state: OriginalFile.State

    /// Takes the exclusive lock.
    ///
    /// - Parameters:
    ///   - reserved: A file with a write lock on the database. No other connection of this process may be open to it.
    ///   - state: The state of the file when the copy was begun.
    ///   - timeout: How long to wait for other connections to close the file or to finish reading it.
    ///   - check: A closure that throws to stop waiting for other connections to close the file.
    /// - Throws: ``StoreError`` with the code `busy` if another connection opened the file meanwhile, or is reading it.
    package init(
        _ paths: DatabasePaths, _ identity: OriginalFile, _ ownership: SoleOwnership, reserved: DatabaseFile,
        state: OriginalFile.State, timeout: Duration, checking check: () throws -> Void = {}
    ) throws {
        self.paths = paths
        self.identity = identity
        self.state = state
        if case .cannotTell(let reason) = ownership {
            try KeptFiles.shared.checkRoom(paths.database)
            guard reserved.exclude(timeout: timeout) else { throw FileUsers.others([]).busy(paths.database) }
            hold = .lock(reserved, reason: reason)
            return
        }
        // A lease requires that this is the only descriptor. If a process wrote in between, the state has changed.
        reserved.close()
        switch try SoleOwnership.waiting(timeout, identity, checking: check) {
        case .granted(let leased):
            try leased.lock()
            hold = .lease(leased)
        case .inUse(let users): throw users.busy(paths.database)
        case .unavailable(let reason):
            throw StoreError.busy(
                paths.database, "CipherStore can no longer determine whether the database is open elsewhere: \(reason)",
                retry: .now)
        }
    }

    /// Locks a file of 0 bytes that is to be replaced.
    ///
    /// This uses SQLite's file layer, because a connection's write lock would write the first page.
    package convenience init(empty paths: DatabasePaths, _ status: FileSystem.Status, timeout: Duration) throws {
        let identity = OriginalFile(paths.database, status)
        let ownership = try SoleOwnership.find(identity, timeout: timeout)
        let file = try DatabaseFile(path: paths.database, access: .readWrite)
        guard file.reserve(timeout: timeout), try file.size() == 0 else {
            throw FileUsers.others([]).busy(paths.database)
        }
        try self.init(
            paths, identity, ownership, reserved: file, state: try identity.state(start: []), timeout: timeout)
    }

    /// Whether the file had 0 bytes when it was locked.
    var isEmpty: Bool { state.size == 0 }

    /// Returns whether the file is unchanged since the copy was made, has no sidecar, and no process is about to open
    /// it.
    package func isAsItWas() throws -> Bool {
        let isSame: Bool
        switch hold {
        case .lease(let file): isSame = try file.isWhole && file.state() == state
        case .lock(let file, _):
            isSame = try identity.state(start: file.read(at: 0, count: OriginalFile.State.length)) == state
        }
        return try isSame && !paths.hasSidecar()
    }

    /// Releases the lock if no other process can have the nameless file open.
    ///
    /// Otherwise keeps it as long as this process lives.
    ///
    /// - Parameter isOverwritten: Whether to overwrite page 1, so that a process that reads the file after the lock is
    ///   released fails instead of writing to a file that has no name any more. The file is never truncated: SQLite
    ///   deletes the journal and the log beside an empty file.
    /// - Returns: Warnings for the report.
    package func end(overwriting isOverwritten: Bool) -> [String] {
        var warnings: [String] = []
        do {
            if isOverwritten { try overwriteStart() }
        } catch {
            warnings.append(
                "connections that have the old file open may continue to write to it, because its first page could not "
                    + "be overwritten: \(error)")
        }
        switch hold {
        case .lease(let file):
            // The lease is checked last: by now, it has stopped every process that was about to open the old file.
            guard !file.isWhole else { return warnings }
            file.endLease()
            KeptFiles.shared.keep(file, identity)
            warnings.append(
                "another process opened the old file while it was being replaced: that process can neither read nor "
                    + "write the old file, and must be restarted before this process ends")
        case .lock(let file, let reason):
            KeptFiles.shared.keep(file, identity)
            warnings.append(
                "it could not be determined whether another process has the old file open (\(reason)): restart any "
                    + "such process before this process ends. The old file is locked only until this process ends; "
                    + "after that, the other process could mistake the new file's journal or log for its own")
        }
        return warnings
    }

    /// Releases the lock of a file that was only renamed.
    ///
    /// Returns warnings for the report.
    package func endAfterRenaming() -> [String] {
        switch hold {
        case .lease(let file):
            guard !file.isWhole else { return [] }
            return ["another process was opening \(paths.database) when the file was renamed; restart that process"]
        case .lock(let file, let reason):
            file.close()
            return [
                "\(paths.database) was renamed, but it could not be determined whether another process has the file "
                    + "open (\(reason)): restart any such process, because it would still use the journal or log "
                    + "under the old name"
            ]
        }
    }

    /// Overwrites the start of the file with page 1, which contains the text of the schema, whatever its size is.
    ///
    /// In an empty file, which an idle connection could fill, the smallest page is written.
    private func overwriteStart() throws {
        let zeros = [UInt8](repeating: 0, count: max(512, state.startLength))
        switch hold {
        case .lease(let file): try file.overwrite(zeros)
        case .lock(let file, _):
            try file.write(zeros, at: 0)
            try file.sync()
        }
    }
}

/// The old files that stay locked as long as this process lives.
///
/// Each one uses the disk space of the old file and several descriptors: as long as a file is locked, SQLite does not
/// close the descriptors of its closed connections to that file, because closing one would drop the lock. All of these
/// descriptors together are limited to half of those that the process may have.
// Unchecked but safe across threads: `files` is accessed only under `lock`, and nothing uses the kept objects any more.
package final class KeptFiles: @unchecked Sendable {
    package static let shared = KeptFiles()

    private var files: [(kept: AnyObject, file: OriginalFile)] = []
    private let lock = Lock()
    private let limit: Int?

    /// - Parameter limit: The maximum number of descriptors; `nil` for half of those that the process may have.
    package init(limit: Int? = nil) { self.limit = limit }

    package func keep(_ object: AnyObject, _ file: OriginalFile) {
        lock.withLock { files.append((object, file)) }
    }

    /// Checks the limit before the next file is converted.
    ///
    /// - Throws: ``StoreError`` with the code `busy` if the limit is reached.
    package func checkRoom(_ path: String) throws {
        let files = lock.withLock { self.files.map(\.file) }
        guard !files.isEmpty else { return }
        let count = OriginalFile.countDescriptors(of: files)
        guard count >= limit ?? Int(getdtablesize()) / 2 else { return }
        throw StoreError(
            .busy, path: path,
            "this process cannot lock any more replaced files: it already keeps \(files.count) locked, "
                + "because other processes may have them open; these locks use \(count) file descriptors",
            advice: "convert the remaining files in another process", changed: .nothing)
    }
}
