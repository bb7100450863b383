import CipherSQLite

/// A new encrypted database, built beside its name and published whole.
struct FreshDatabase {
    let paths: DatabasePaths
    let upgrade: EncryptionUpgrade

    /// Builds the database and gives it its name, unless something has that name by then.
    ///
    /// - Parameter fill: Brings the empty database to the current version.
    /// - Returns: Its key, what `fill` returned, and what is to be told of an empty file that was replaced.
    func publish<Report>(_ fill: (Connection) throws -> Report) throws -> (FileKey, Report, warnings: [String]) {
        guard FileSystem.canWriteInFolder(paths.folder) else {
            throw StoreError(
                .permission, path: paths.folder, "the folder cannot be written",
                advice: "give this user the permission to write it")
        }
        let key = try upgrade.newFileKey()
        try Leftovers.sweep(paths)
        do {
            let (fileKey, report) = try build(key, fill)
            let warnings = try publish()
            try AttemptRecord.remove(paths)
            return (fileKey, report, warnings)
        } catch {
            try Leftovers.sweep(paths)
            guard let error = error as? DatabaseError else { throw error }
            throw StoreError.upgrading(error, paths)
        }
    }

    private func build<Report>(
        _ key: CipherKey, _ fill: (Connection) throws -> Report
    ) throws -> (FileKey, Report) {
        let settings = upgrade.options.settings
        try FileSystem.createExclusively(paths.copy)
        let salt = try key.salt ?? SecretBytes.random(count: CipherKey.saltLength)
        let fileKey = try FileKey(key, salt: salt, settings)
        let report = try ReadBack(paths: paths, key: fileKey).lending { connection in
            connection.allowDoubleQuotedStrings()
            for collation in upgrade.options.collations { try connection.register(collation) }
            // No sidecar may exist while the file changes its name.
            _ = try connection.value(String.self, "PRAGMA journal_mode = MEMORY")
            return try fill(connection)
        }
        // What the provider gives to the next launch must open the file.
        let again = try upgrade.keyAskedAgain(key)
        try Connection(path: paths.copy, mode: .readOnly, key: again, settings: settings).close()
        try FileSystem.sync(paths.copy)
        return (fileKey, report)
    }

    /// Returns what is to be told.
    private func publish() throws -> [String] {
        if let status = try FileSystem.status(paths.database), status.size == 0 { return try replaceEmptyFile(status) }
        try removeSidecars()
        guard try FileSystem.renameIfFree(paths.copy, to: paths.database) else { throw madeMeanwhile() }
        try FileSystem.syncFolder(of: paths.database)
        return []
    }

    /// What an earlier file left: the inspection found no page in it, but a journal without pages still cuts a database
    /// to the length it tells of.
    private func removeSidecars() throws {
        guard try !SidecarScan.holdsPages(paths) else { throw Inspector(paths).staleSidecar() }
        for path in [paths.wal, paths.sharedMemory, paths.journal] { try FileSystem.removeIfPresent(path) }
    }

    /// A file of 0 bytes is a database to SQLite, and another program may be about to write it.
    private func replaceEmptyFile(_ status: FileSystem.Status) throws -> [String] {
        let swap = Swap(paths: paths, status: status)
        let refused = try swap.dress()
        let old = try OldFile(empty: paths, status, timeout: upgrade.options.busyTimeout)
        try removeSidecars()
        let otherNames = try swap.commit(old)
        return refused + swap.finish(old, otherNames: otherNames)
    }

    private func madeMeanwhile() -> StoreError {
        StoreError(
            .busy, path: paths.database, "another program made the file at the same moment",
            advice: "try again; nothing was changed")
    }
}
