internal import CipherErrors
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

    /// Keeps the database and its log before SQLite merges them, if the log holds such commits.
    ///
    /// The caller holds the upgrade lock. A recovery would find the same rows as SQLite, so none is started.
    ///
    /// - Returns: A warning that names the kept files; `nil` if there are no such commits.
    /// - Throws: ``StoreError`` with the code `corrupt` if damage is to be refused; `noSpace` if the files cannot be
    ///   kept.
    package static func keep(_ paths: DatabasePaths, _ onDamage: OnDamage) throws -> String? {
        try whileUnused(paths) { log in
            guard onDamage != .refuse else { throw StoreError.damaged(paths.database, finding) }
            let file = try DatabaseFile(path: paths.database)
            let kept = try DamagedOriginal.keepCopy(paths, file, log)
            let readable =
                try FileHeader(file).isPlaintext
                ? "; they are in plaintext, so delete them once you know that nothing is missing" : ""
            return "\(finding): rows may be missing. Copies of the database and its -wal are kept as "
                + "\(SystemPath.printable(kept)) and \(SystemPath.printable(kept))-wal\(readable)"
        }
    }

    /// Runs `body` with the log while no connection uses the log, if it holds such commits.
    ///
    /// While a connection uses the log, SQLite reads it by its index, and a writer may be changing it.
    private static func whileUnused<Result>(_ paths: DatabasePaths, _ body: (SidecarFile) throws -> Result) throws
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
