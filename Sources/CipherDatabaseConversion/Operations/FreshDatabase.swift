internal import CipherPrimitives
internal import CipherErrors
package import CipherSQLite
internal import CipherSystemFiles

/// A new database that is built under a temporary name and then published whole.
package struct FreshDatabase {
    package let paths: DatabasePaths
    package let upgrade: EncryptionUpgrade
    package let isEncrypted: Bool

    package init(paths: DatabasePaths, upgrade: EncryptionUpgrade, isEncrypted: Bool = true) {
        self.paths = paths
        self.upgrade = upgrade
        self.isEncrypted = isEncrypted
    }

    /// Builds the database and renames it into place, unless another file has taken its name by then.
    ///
    /// - Parameter fill: Brings the empty database to the current version.
    /// - Returns: The file's key, or `nil` for a plaintext file; the value that `fill` returned; and warnings about
    ///   the key and an empty file that was replaced.
    package func publish<Report>(
        _ fill: (Connection) throws -> Report
    ) throws -> (FileKey?, Report, warnings: [String]) {
        try checkFolder()
        let key = try isEncrypted ? upgrade.newFileKey() : nil
        let ((fileKey, report), warnings) = try place { try build($0, key, fill) }
        return (fileKey, report, warnings + (fileKey?.warnings ?? []))
    }

    private func checkFolder() throws {
        guard FileSystem.canWriteInFolder(paths.folder) else {
            throw StoreError.permission(paths.folder, "the folder is not writable", .write)
        }
    }

    /// Makes a database, syncs it and renames it into place, unless another file has taken its name by then.
    ///
    /// - Returns: The value that `make` returned, and warnings about an empty file that was replaced.
    func place<Made>(_ make: (NewFile) throws -> Made) throws -> (made: Made, warnings: [String]) {
        try checkFolder()
        let folder = try paths.openFolder()
        try Preflight.checkNames(folder, paths)
        let left = try Leftovers.sweep(paths)
        do {
            try JournalRollback.runFirstTransaction(paths, busyTimeout: upgrade.options.busyTimeout)
            var record = try AttemptRecord(attempts: 1, original: folder.status(paths.name)?.identity.inode)
            try record.write(folder, paths)
            let copy = try record.makeCopy(folder, paths)
            let made = try make(copy)
            var warnings = try left + publish(copy, record.copyName(paths))
            do {
                try AttemptRecord.end(paths, leaving: left)
            } catch {
                warnings.append(
                    "\(paths.attemptName) could not be removed (CipherStore will try again at the next launch): "
                        + "\(error)")
            }
            return (made, warnings)
        } catch {
            if let told = try? Leftovers.sweep(paths) { try? AttemptRecord.end(paths, leaving: told) }
            guard let error = error as? DatabaseError else { throw error }
            throw Inspector(paths).readFailure(error, during: .conversion)
        }
    }

    private func build<Report>(
        _ copy: NewFile, _ key: CipherKey?, _ fill: (Connection) throws -> Report
    ) throws -> (FileKey?, Report) {
        let settings = upgrade.options.format
        let fileKey = try key.map {
            try FileKey($0, salt: $0.salt ?? SecretBytes.random(count: CipherKey.saltLength), settings)
        }
        let report = try ReadBack(paths: paths, copy: copy, key: fileKey).lending { connection in
            try ConnectionProfile.scratch.with(extensions: upgrade.options.extensions).apply(to: connection)
            return try fill(connection)
        }
        // The key that the provider returns at the next launch must open the file.
        let again = try key.map { try upgrade.keyAskedAgain($0) }
        let reader = try ConnectionProfile.plain(.readOnly).with(key: again, format: settings)
            .open(copy.path, through: copy.layer())
        defer { reader.close() }
        try reader.proveReadable()
        try copy.sync()
        return (fileKey, report)
    }

    /// Publishes the database under its name and returns warnings.
    private func publish(_ copy: NewFile, _ copyName: String) throws -> [String] {
        if let status = try copy.folder.status(paths.name) {
            // The sidecars of a file with content belong to the program that wrote it.
            guard status.isRegular, status.size == 0 else { throw StoreError.madeMeanwhile(paths.database) }
            return try replaceEmptyFile(status, copy, copyName)
        }
        try checkSidecars()
        try paths.removeSidecarsOfMissing()
        guard try copy.hasName(copyName), try copy.folder.renameIfFree(copyName, to: paths.name),
            (try? copy.hasName(paths.name)) != false
        else { throw StoreError.madeMeanwhile(paths.database) }
        // The database is published and nothing here can undo that, so a failure becomes a warning instead of an error.
        do {
            try copy.folder.sync()
            return []
        } catch {
            return [
                "the new database may be lost if the power fails, because the folder could not be synced: \(error)"
            ]
        }
    }

    /// Checks that the sidecars of an earlier file, which are about to be removed, contain no pages.
    ///
    /// Even a journal without pages would make SQLite truncate the database to the length in the journal's header.
    private func checkSidecars() throws {
        guard try !SidecarScan.holdsPages(paths) else { throw Inspector(paths).staleSidecar() }
    }

    private func removeSidecars() throws {
        try checkSidecars()
        for path in [paths.wal, paths.sharedMemory, paths.journal] { try FileSystem.removeIfPresent(path) }
    }

    /// Replaces a file of 0 bytes.
    ///
    /// SQLite treats it as a database, and another program may be about to write to it.
    private func replaceEmptyFile(
        _ status: FileSystem.Status, _ copy: NewFile, _ copyName: String
    ) throws -> [String] {
        let swap = Swap(paths, new: copy, named: copyName, empty: status.identity)
        let refused = try swap.applyMetadata()
        let old = try ReplacedFile(empty: paths, status, timeout: upgrade.options.busyTimeout)
        try removeSidecars()
        return refused + (try swap.commit(old)).finish()
    }
}
