internal import CipherCatalog
internal import CipherErrors
internal import CipherPlatform
package import CipherSQLite
package import CipherSystemFiles

/// The checks that are made before anything is changed.
package struct Preflight {
    package let paths: DatabasePaths
    /// The settings of the copy; `nil` for a plaintext copy.
    package let settings: CipherSettings?
    package let keepBackup: Bool

    package init(paths: DatabasePaths, settings: CipherSettings?, keepBackup: Bool) {
        self.paths = paths
        self.settings = settings
        self.keepBackup = keepBackup
    }

    /// Checks permissions, owner, free space and names.
    ///
    /// Returns the file's status.
    ///
    /// - Parameter content: The number of bytes to copy; `nil` for the size of the file with its log.
    package func checkFiles(_ folder: Folder, copying content: Int64? = nil) throws -> FileSystem.Status {
        // Reading the status refuses a link that has replaced the file that a search found.
        _ = try paths.status()
        guard let status = try folder.status(paths.name) else {
            throw StoreError.missingFile(paths.database)
        }
        guard status.isRegular else {
            throw StoreError.busy(
                paths.database, "another program replaced the file with something that is not a regular file",
                retry: .afterSearching)
        }
        try Self.checkNames(folder, paths)
        try checkMount(folder, status)
        // The owner is checked first, because write access alone would not help.
        guard FileSystem.canTakeOwner(status) else {
            throw StoreError(
                .permission, path: paths.database,
                "the file belongs to another user, and this process cannot give the new file the same owner",
                advice: "run the conversion as the owner of the file")
        }
        guard FileSystem.canWriteInFolder(paths.folder) else {
            throw StoreError.permission(
                paths.folder, "the folder is not writable, but the conversion must create the copy in it", .write)
        }
        guard FileSystem.canWrite(paths.database) else {
            throw StoreError.permission(paths.database, "the file is not writable", .write)
        }
        guard try FileSystem.status(paths.folder).map({ FileSystem.canTakeGroup(status, in: $0) }) != false else {
            throw StoreError(
                .permission, path: paths.database,
                "this user is not in the file's group, but the new file must belong to the same group",
                advice: "run the conversion as a member of the group, or change the file's group (chgrp) to one of "
                    + "this user's groups")
        }
        let content = try content ?? status.size + (FileSystem.size(paths.wal) ?? 0)
        try Self.checkRoom(for: content, settings, paths, besides: keepBackup ? content : 0)
        return status
    }

    /// Checks whether the names that the upgrade needs are available.
    package func checkNames() throws { try Self.checkNames(paths.openFolder(), paths) }

    static func checkNames(_ folder: Folder, _ paths: DatabasePaths) throws {
        let longest = Int(fpathconf(folder.descriptor, Int32(_PC_NAME_MAX)))
        let length = SystemPath.bytes(paths.name).count + DatabasePaths.longestAddition
        guard longest <= 0 || length <= longest else {
            throw StoreError(
                .nameTaken, path: paths.database,
                "the file name is too long: with the suffixes that CipherStore appends, it has \(length) bytes, but "
                    + "the file system allows only \(longest) bytes",
                advice: "choose a name of at most \(longest - DatabasePaths.longestAddition) bytes for the database",
                changed: .nothing)
        }
        guard try AttemptRecord.find(folder, paths) != .stranger else { throw AttemptRecord.nameTaken(paths) }
    }

    /// Refuses a file that is itself a mount point.
    ///
    /// Such a file cannot be replaced, but the system reports that only when the replacement is attempted.
    private func checkMount(_ folder: Folder, _ status: FileSystem.Status) throws {
        guard try MountPoint.isOne(paths.database, status, in: folder) else { return }
        throw StoreError(
            .permission, path: paths.database,
            "the file itself is a mount point, so it cannot be replaced by its copy",
            advice: "mount the file's folder instead, or run the conversion where the file is not a mount point",
            changed: .nothing)
    }

    /// Checks the free space.
    ///
    /// The copy is about as large as the copied data, plus the bytes that encryption adds to each page.
    ///
    /// - Parameters:
    ///   - content: The number of bytes to copy.
    ///   - settings: The settings of the copy; `nil` for a plaintext copy.
    ///   - paths: The paths of the file that the copy will become.
    ///   - more: The number of bytes that are written besides the copy.
    static func checkRoom(
        for content: Int64, _ settings: CipherSettings?, _ paths: DatabasePaths, besides more: Int64 = 0
    ) throws {
        let usable = settings.map { Double($0.pageSize - $0.reservedBytes) / Double($0.pageSize) } ?? 1
        let copy = Int64(Double(content) / usable * 1.02) + 128 * 1024
        try paths.checkRoom(for: copy + more, largest: copy, "the copy needs")
    }

    /// Checks the entries of the schema, and that the collations by which indexes are sorted are registered.
    ///
    /// A stand-in for a collation would build indexes that the app sees as corrupt.
    package func checkSchema(_ connection: Connection) throws {
        try Self.checkSchema(connection, paths.database)
    }

    /// Checks the schema of the database at a path, as ``checkSchema(_:)`` does.
    static func checkSchema(_ connection: Connection, _ path: String) throws {
        try SchemaEntryCheck.check(connection)
        let missing = try SchemaCollations.missing(connection)
        guard missing.isEmpty else {
            let names = missing.joined(separator: ", ")
            throw StoreError(
                .missingCollation, path: path,
                "the schema uses collations that are not registered: \(names)",
                advice: "register the collations in the configuration's `collations`", changed: .nothing)
        }
    }
}
