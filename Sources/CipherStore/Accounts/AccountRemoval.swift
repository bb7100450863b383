package import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// Removes a database with all files that belong to it.
package struct AccountRemoval {
    let paths: DatabasePaths
    /// The copy that an unfinished upgrade by the app itself may have left; it would become the database again.
    let interruptedCopy: DatabasePaths?

    package init(paths: DatabasePaths, interruptedCopy: DatabasePaths?) {
        self.paths = paths
        self.interruptedCopy = interruptedCopy
    }

    /// - Throws: ``StoreError`` with the code `busy` if another connection has the file open.
    package func run(timeout: Duration) throws {
        try UpgradeLock.withLock(paths, timeout: timeout) {
            guard let status = try FileSystem.status(paths.database) else { return try removeFiles() }
            guard status.isRegular else {
                throw StoreError(
                    .notAFile, path: paths.database, "the path does not refer to a regular file",
                    advice: "remove the item at this path yourself")
            }
            let file = try DatabaseFile(path: paths.database, access: .readWrite)
            let isDone: Bool? = try file.whileUnused {
                try removeFiles()
                return true
            }
            guard isDone == true else {
                throw StoreError.busy(
                    paths.database, "another process has the database open", retry: .afterClosing,
                    changed: .nothingRemoved)
            }
        }
    }

    /// Removes the files.
    ///
    /// The log and the journal go before the database: without the database, they would be mistaken for those of
    /// another database.
    private func removeFiles() throws {
        try Leftovers.sweep(paths)
        let own = [interruptedCopy, paths].compactMap { $0 }.flatMap {
            [$0.wal, $0.sharedMemory, $0.journal, $0.database]
        }
        for path in try own + paths.backups() + paths.damagedOriginals() + paths.unfinishedFiles() {
            try FileSystem.removeIfPresent(path)
        }
        try AttemptRecord.remove(paths)
        try FileSystem.syncFolder(of: paths.database)
    }
}
