package import CCipherSystem
internal import CipherErrors
internal import CipherPlatform

/// A file that this run created.
///
/// All operations use the descriptor with which the file was created, because its name may now lead to another
/// program's file.
package final class NewFile: Sendable {
    package let folder: Folder
    /// The name; `nil` for a file that was created without a name.
    let name: String?
    /// The path to name in errors.
    package let path: String
    package let identity: FileIdentity
    /// The file descriptor, which is open for reading and writing as long as this object exists.
    package let descriptor: Int32

    /// Creates an empty file with mode 0600; throws if something already has the name.
    package convenience init(_ name: String, in folder: Folder) throws {
        try self.init(try folder.create(name), name, folder, folder.path(of: name))
    }

    /// Creates an empty file without a name.
    ///
    /// - Parameter path: The path to name in errors.
    package convenience init(withoutNameIn folder: Folder, path: String) throws {
        try self.init(try folder.createNameless(), nil, folder, path)
    }

    /// Creates an empty file with mode 0600 that can be linked to a name when it is complete; returns `nil` if the
    /// system does not support files without a name.
    package convenience init?(toBeNamedIn folder: Folder, path: String) throws {
        let descriptor = cs_open_nameless(folder.descriptor)
        guard descriptor >= 0 else { return nil }
        try self.init(descriptor, nil, folder, path)
        // The process's umask has removed some of the permissions.
        try setMode(0o600)
    }

    /// Opens a file that an earlier run created; returns `nil` if the name leads to another file, or to no file.
    ///
    /// - Parameter inode: The file's inode number, as the earlier run recorded it.
    package convenience init?(madeBefore name: String, _ inode: UInt64, in folder: Folder) throws {
        guard let found = try folder.status(name), found.isRegular, found.identity.inode == inode,
            let descriptor = try folder.openFile(name)
        else { return nil }
        try self.init(descriptor, name, folder, folder.path(of: name), isNew: false)
        // The file may have been replaced in between.
        guard identity == found.identity else { return nil }
    }

    private init(
        _ descriptor: Int32, _ name: String?, _ folder: Folder, _ path: String, isNew: Bool = true
    ) throws {
        do {
            if isNew { try FileSystem.dropInheritedAccess(descriptor, path) }
            identity = try FileSystem.status(ofDescriptor: descriptor, path).identity
        } catch {
            close(descriptor)
            if isNew, let name { try folder.removeIfPresent(name) }
            throw error
        }
        self.folder = folder
        self.name = name
        self.path = path
        self.descriptor = descriptor
    }

    // Closing also drops the locks that this process has on the file, so this object must be released before SQLite's
    // own layer opens the file.
    deinit { close(descriptor) }

    package func size() throws -> Int64 { try status().size }

    package func status() throws -> FileSystem.Status { try FileSystem.status(ofDescriptor: descriptor, path) }

    /// Returns whether a name still leads to this file.
    package func hasName(_ name: String) throws -> Bool { try folder.status(name)?.identity == identity }

    /// Links a file without a name to a name.
    ///
    /// - Returns: Whether the name was free; `nil` if the system does not support this.
    package func appear(as name: String) -> Bool? {
        let result = name.withSystemPath { cs_name_nameless(descriptor, folder.descriptor, $0) }
        return result == 0 ? true : errno == EEXIST ? false : nil
    }

    /// Locks the file (`flock`) until ``unlock()`` is called or this object is released.
    ///
    /// - Returns: `false` if another process, or another part of this process, has locked the file.
    package func lock() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }

    /// Ends ``lock()``.
    package func unlock() { _ = flock(descriptor, LOCK_UN) }

    /// Makes the content durable.
    ///
    /// A failure is final, because the kernel may have dropped the data that it could not write.
    package func sync() throws {
        guard syncToDisk(descriptor) else { throw FileSystem.failure("be synced", path) }
    }

    /// Removes all content, to start again.
    package func empty() throws {
        guard ftruncate(descriptor, 0) == 0 else { throw FileSystem.failure("be emptied", path) }
    }

    /// Appends bytes.
    package func append(_ bytes: UnsafeRawBufferPointer) throws {
        try FileSystem.write(bytes, to: descriptor, path)
    }

    package func setOwner(_ owner: uid_t, _ group: gid_t) throws {
        guard fchown(descriptor, owner, group) == 0 else { throw FileSystem.failure("be assigned its owner", path) }
    }

    package func setMode(_ mode: mode_t) throws {
        guard fchmod(descriptor, mode) == 0 else { throw FileSystem.failure("be assigned its permissions", path) }
    }

    /// Copies the extended attributes of another file to this one.
    ///
    /// - Returns: The names of the attributes that the system did not allow to be set.
    package func copyAttributes(of original: PinnedFile) throws -> [String] {
        try original.attributes().compactMap { attribute in
            let result = attribute.name.withUnsafeBufferPointer { name in
                cs_fsetxattr(descriptor, name.baseAddress, attribute.value, attribute.value.count)
            }
            return result == 0 ? nil : attribute.displayName
        }
    }
}
