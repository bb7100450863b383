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
        try Recovery.sweep(paths)
        do {
            let (fileKey, report) = try build(key, fill)
            try publish()
            try AttemptRecord.remove(paths)
            return (fileKey, report)
        } catch {
            try Recovery.sweep(paths)
            guard let error = error as? DatabaseError else { throw error }
            throw upgrade.typed(error)
        }
    }

    private func build<Report>(
        _ key: CipherKey, _ fill: (Connection) throws -> Report
    ) throws -> (FileKey, Report) {
        let settings = upgrade.options.settings
        try FileSystem.createExclusively(paths.copy)
        let salt = try key.salt ?? SecretBytes.random(count: CipherKey.saltLength)
        let fileKey = try FileKey(key, salt: salt, settings)
        let connection = try Connection(path: paths.copy, mode: .readWrite)
        let report: Report
        do {
            defer { connection.close() }
            try connection.setKey(fileKey.key, settings: settings)
            connection.allowDoubleQuotedStrings()
            for collation in upgrade.options.collations { try connection.register(collation) }
            // No sidecar may exist while the file changes its name.
            _ = try connection.value(String.self, "PRAGMA journal_mode = MEMORY")
            report = try fill(connection)
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
        } else if try !FileSystem.renameIfFree(paths.copy, to: paths.database) {
            throw StoreError(
                .busy, path: paths.database, "another program made the file at the same moment",
                advice: "try again; nothing was changed")
        }
        try FileSystem.syncFolder(of: paths.database)
    }

    /// A file of 0 bytes is a database to SQLite, and another program may be about to write it.
    ///
    /// The lock is taken on the file itself: a connection would begin by writing the first page, and with it a journal
    /// that then lay beside the new file.
    private func replaceEmptyFile(_ status: FileSystem.Status) throws {
        let file = try DatabaseFile(path: paths.database, access: .readWrite)
        let isReplaced: Bool? = try file.whileUnused {
            guard try file.size() == 0, try isStill(status), try !hasSidecars() else { return false }
            _ = try Swap(paths: paths, status: status).dress()
            try FileSystem.rename(paths.copy, to: paths.database)
            // An idle connection to the old file then fails, instead of writing into a file that has no name.
            if status.links == 1 { try file.write([UInt8](repeating: 0, count: 512), at: 0) }
            return true
        }
        guard isReplaced == true else {
            throw StoreError(
                .busy, path: paths.database, "another program uses the file at the same moment",
                advice: "try again; nothing was changed")
        }
    }

    private func isStill(_ status: FileSystem.Status) throws -> Bool {
        guard let current = try FileSystem.status(paths.database, followLinks: false) else { return false }
        return current.device == status.device && current.inode == status.inode
    }

    private func hasSidecars() throws -> Bool {
        try FileSystem.exists(paths.wal) || FileSystem.exists(paths.journal) || FileSystem.exists(paths.sharedMemory)
    }
}
