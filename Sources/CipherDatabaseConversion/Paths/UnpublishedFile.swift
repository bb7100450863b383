internal import CipherErrors
internal import CipherSystemFiles

/// A file that is renamed into place once it is complete.
final class UnpublishedFile {
    let content: NewFile
    private let target: DatabasePaths
    /// The temporary name, if the file system does not support nameless files.
    private let temporaryName: String?

    /// Refuses a name that is taken, or that belongs to the database itself or a file beside it.
    ///
    /// - Parameter source: The path of the database from which the new one is made, without symbolic links.
    static func checkName(_ target: DatabasePaths, in folder: Folder, besides source: String) throws {
        guard try folder.status(target.name) == nil else { throw StoreError.targetTaken(target) }
        let (sourceFolder, sourceName) = FileSystem.split(source)
        if let database = DatabasePaths.database(besideWhich: target.name), database.isSameName(as: sourceName),
            SmallFile.isSame(sourceFolder, target.folder)
        {
            throw StoreError(
                .nameTaken, path: target.database,
                "a file with this name would be treated as part of the original database",
                advice: "choose another name for the new file", changed: .nothing)
        }
        for path in [target.wal, target.journal, target.sharedMemory] where try FileSystem.exists(path) {
            throw StoreError.inTheWay(path, "SQLite would treat this file as part of the new database")
        }
        guard FileSystem.canWriteInFolder(target.folder) else {
            throw StoreError.permission(target.folder, "the folder is not writable", .write)
        }
    }

    init(in folder: Folder, _ target: DatabasePaths) throws {
        self.target = target
        if let nameless = try NewFile(toBeNamedIn: folder, path: target.database) {
            content = nameless
            temporaryName = nil
        } else {
            let name = ".cipherstore-backup-\(try Folder.randomName())"
            content = try NewFile(name, in: folder)
            temporaryName = name
        }
    }

    /// Renames the file into place; its name must be free.
    ///
    /// - Returns: Warnings for the report.
    func publish() throws -> [String] {
        try content.sync()
        guard try appear() else { throw StoreError.targetTaken(target) }
        // The file is published and nothing here can undo that, so a failure becomes a warning instead of an error.
        do {
            try content.folder.sync()
            return []
        } catch {
            return ["the new file may be lost if the power fails, because the folder could not be synced: \(error)"]
        }
    }

    private func appear() throws -> Bool {
        guard let temporaryName else {
            guard let isFree = content.appear(as: target.name) else {
                throw FileSystem.failure("be given its final name", target.database)
            }
            return isFree
        }
        guard try content.hasName(temporaryName) else {
            throw StoreError.busy(
                target.database, "another program replaced the new file while it was being written",
                retry: .afterSearching)
        }
        return try content.folder.renameIfFree(temporaryName, to: target.name)
    }

    /// Removes the file if it was not published.
    func remove() {
        guard let temporaryName, (try? content.hasName(temporaryName)) == true else { return }
        _ = try? content.folder.removeIfPresent(temporaryName)
    }
}

extension StoreError {
    fileprivate static func targetTaken(_ target: DatabasePaths) -> StoreError {
        StoreError(
            .nameTaken, path: target.database, "a file with this name already exists and was not replaced",
            advice: "choose another name for the new file, or move the existing file elsewhere", changed: .nothing)
    }
}
