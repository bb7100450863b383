import CipherSQLite

/// A new encrypted database, built beside its name and published whole.
struct FreshDatabase {
    let paths: DatabasePaths
    let upgrade: EncryptionUpgrade

    /// Builds the database and gives it its name, unless something has that name by then.
    ///
    /// - Parameter fill: Brings the empty database to the current version.
    func publish<Report>(_ fill: (Connection) throws -> Report) throws -> (FileKey, Report) {
        guard FileSystem.canWriteInFolder(paths.folder) else {
            throw StoreError(
                .permission, path: paths.folder, "the folder cannot be written",
                advice: "give this user the permission to write it")
        }
        let key = try upgrade.newFileKey()
        try Leftovers.sweep(paths)
        do {
            let (fileKey, report) = try build(key, fill)
            try publish()
            try AttemptRecord.remove(paths)
            return (fileKey, report)
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

    private func publish() throws {
        if let status = try FileSystem.status(paths.database), status.size == 0 {
            try replaceEmptyFile(status)
        } else {
            try removeSidecars()
            guard try FileSystem.renameIfFree(paths.copy, to: paths.database) else { throw madeMeanwhile() }
        }
        try FileSystem.syncFolder(of: paths.database)
    }

    /// What an earlier file left: the inspection found no page in it, but a journal without pages still cuts a database
    /// to the length it tells of.
    private func removeSidecars() throws {
        guard try !SidecarScan.holdsPages(paths) else { throw Inspector(paths).staleSidecar() }
        for path in [paths.wal, paths.sharedMemory, paths.journal] { try FileSystem.removeIfPresent(path) }
    }

    /// A file of 0 bytes is a database to SQLite, and another program may be about to write it.
    ///
    /// Held through SQLite's file layer: a connection's write lock would write the first page.
    private func replaceEmptyFile(_ status: FileSystem.Status) throws {
        let swap = Swap(paths: paths, status: status)
        let file = try DatabaseFile(path: paths.database, access: .readWrite)
        let isDone: Bool? = try file.whileUnused {
            guard try file.size() == 0 else { throw madeMeanwhile() }
            try removeSidecars()
            _ = try swap.dress()
            try swap.commit { true }
            // A connection elsewhere that has the old file open then fails instead of writing into a nameless file.
            if status.links == 1 { try file.write([UInt8](repeating: 0, count: 512), at: 0) }
            return true
        }
        guard isDone == true else {
            throw StoreError(
                .busy, path: paths.database, "another process has the database open",
                advice: "close it and try again; nothing was changed")
        }
    }

    private func madeMeanwhile() -> StoreError {
        StoreError(
            .busy, path: paths.database, "another program made the file at the same moment",
            advice: "try again; nothing was changed")
    }
}
