internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Commits in a log that SQLite does not read, because an earlier part of the log is damaged.
///
/// SQLite ignores these commits without an error, and removes the log afterwards.
///
/// Some of them may have failed: if the sync of a commit fails, SQLite writes the next transaction over its frames, and
/// the frames that remain cannot be distinguished from those after a damaged frame.
package enum LostCommits {
    package static let finding =
        "the -wal contains transactions that SQLite does not read, because an earlier part of the -wal is damaged or "
        + "because their commits failed"

    /// Returns whether the log of a database holds such commits.
    ///
    /// - Parameter timeout: How long to wait for connections that use the log.
    package static func exist(_ paths: DatabasePaths, timeout: Duration = .zero) throws -> Bool {
        try whileUnused(paths, timeout: timeout) { _, _ in } != nil
    }

    /// Returns a warning about copies that were kept because of such commits; `nil` if the copies no longer exist.
    ///
    /// - Parameter number: The number of the name ``DatabasePaths/damagedName(_:)``.
    static func warning(ofCopies number: Int, _ paths: DatabasePaths) throws -> String? {
        let path = FileName.sibling(paths.damagedName(number), of: paths.database)
        let kept = try [path, path + "-wal"].filter {
            try FileSystem.status($0, followLinks: false)?.isRegular == true
        }
        guard let first = kept.first else { return nil }
        let isPlaintext = first == path && (try? FileHeader(DatabaseFile(path: path)).isPlaintext) == true
        return "the -wal contained transactions that SQLite did not read, because an earlier part of the -wal was "
            + "damaged or because their commits failed: rows may be missing. Copies of the database and its -wal are "
            + "kept as \(kept.map { SystemPath.printable($0) }.joined(separator: " and ")); "
            + "\(isPlaintext ? "they are in plaintext, so " : "")delete them once you know that nothing is missing"
    }

    /// Runs `body` while no connection uses the log, if it holds such commits, with the log and the offset from which
    /// SQLite does not read it.
    ///
    /// While a connection uses the log, SQLite reads it by its index, and a writer may be changing it.
    ///
    /// - Parameter timeout: How long to wait for connections that use the log.
    static func whileUnused<Result>(
        _ paths: DatabasePaths, timeout: Duration, _ body: (SidecarFile, Int64) throws -> Result
    ) throws -> Result? {
        func look() throws -> Result? {
            guard let log = try SidecarFile(paths.wal), let start = try LogHeader.startOfLostPart(of: log) else {
                return nil
            }
            return try body(log, start)
        }
        let deadline = ContinuousClock.now + timeout
        repeat {
            // A log that a writer is changing may look damaged for a moment.
            guard let log = try SidecarFile(paths.wal), try LogHeader.losesCommits(log),
                try FileSystem.exists(paths.database)
            else { return nil }
            // A file that cannot be written cannot be locked either.
            guard FileSystem.canWrite(paths.database) else { return try look() }
            let file = try DatabaseFile(path: paths.database, access: .readWrite)
            if let found = try file.whileUnused(timeout: min(timeout, .milliseconds(50)), look) { return found }
        } while ContinuousClock.now < deadline
        return nil
    }
}
