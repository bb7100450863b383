internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Commits in a log that SQLite does not read, because an earlier part of the log is damaged.
///
/// SQLite ignores these commits without an error, and removes the log afterwards.
package enum LostCommits {
    static let finding =
        "the -wal is damaged, and SQLite does not read the transactions that were committed after the damage"

    /// Returns whether the log of a database holds such commits.
    package static func exist(_ paths: DatabasePaths) throws -> Bool {
        try whileUnused(paths) { _ in } != nil
    }

    /// Runs `body` with the log while no connection uses the log, if it holds such commits.
    ///
    /// While a connection uses the log, SQLite reads it by its index, and a writer may be changing it.
    static func whileUnused<Result>(_ paths: DatabasePaths, _ body: (SidecarFile) throws -> Result) throws
        -> Result?
    {
        func look() throws -> Result? {
            guard let log = try SidecarFile(paths.wal), try LogHeader.losesCommits(log) else { return nil }
            return try body(log)
        }
        guard let log = try SidecarFile(paths.wal), try LogHeader.losesCommits(log) else { return nil }
        // A file that cannot be written cannot be locked either.
        guard FileSystem.canWrite(paths.database) else { return try look() }
        return try DatabaseFile(path: paths.database, access: .readWrite).whileUnused(look) ?? nil
    }
}
