package import CCipherSystem
internal import CipherErrors

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A file that this run made.
///
/// Everything is done to it through the descriptor that it was created with: whatever has its name by then may be
/// somebody else's.
package final class NewFile: Sendable {
    package let folder: Folder
    /// `nil` for a file that never had one.
    let name: String?
    /// What errors name.
    package let path: String
    package let identity: FileIdentity
    /// Open for reading and writing, for as long as this file is kept.
    package let descriptor: Int32

    /// Makes an empty file of mode 0600 where there is nothing.
    package convenience init(_ name: String, in folder: Folder) throws {
        try self.init(try folder.create(name), name, folder, folder.path(of: name))
    }

    /// Makes an empty file that has no name.
    ///
    /// - Parameter path: What errors name.
    package convenience init(withoutNameIn folder: Folder, path: String) throws {
        try self.init(try folder.createNameless(), nil, folder, path)
    }

    /// Makes an empty file of mode 0600 that can be given a name once it is whole; `nil` where there are no such files.
    package convenience init?(toBeNamedIn folder: Folder, path: String) throws {
        let descriptor = cs_open_nameless(folder.descriptor)
        guard descriptor >= 0 else { return nil }
        try self.init(descriptor, nil, folder, path)
        // The mask of the process has taken some of it away.
        try setMode(0o600)
    }

    /// Opens a file that another run of ours made; `nil` if the name leads to another file, or to none.
    ///
    /// - Parameter inode: Its number, as that run recorded it.
    package convenience init?(madeBefore name: String, _ inode: UInt64, in folder: Folder) throws {
        guard let found = try folder.status(name), found.isRegular, found.identity.inode == inode,
            let descriptor = try folder.openFile(name)
        else { return nil }
        try self.init(descriptor, name, folder, folder.path(of: name), isNew: false)
        // It may have been replaced in between.
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

    // Also drops the locks that this process has on the file, so it must be gone before SQLite's own layer opens the file.
    deinit { close(descriptor) }

    package func size() throws -> Int64 { try status().size }

    package func status() throws -> FileSystem.Status { try FileSystem.status(ofDescriptor: descriptor, path) }

    /// Whether the name, where there is one, still leads here.
    package func hasName(_ name: String) throws -> Bool { try folder.status(name)?.identity == identity }

    /// Gives a file without a name one.
    ///
    /// Returns whether the name was free; `nil` if the system cannot do it.
    package func appear(as name: String) -> Bool? {
        let result = name.withSystemPath { cs_name_nameless(descriptor, folder.descriptor, $0) }
        return result == 0 ? true : errno == EEXIST ? false : nil
    }

    /// Locks the file (`flock`) until ``unlock()``, or until this file is let go.
    ///
    /// Returns whether no other process and no other part of this one has it locked.
    package func lock() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }

    /// Ends ``lock()``.
    package func unlock() { _ = flock(descriptor, LOCK_UN) }

    /// Makes the content durable.
    ///
    /// A failure is final: the kernel may have dropped what it could not write.
    package func sync() throws {
        guard syncToDisk(descriptor) else { throw FileSystem.failure("be synced", path) }
    }

    /// Takes all content away, for another beginning.
    package func empty() throws {
        guard ftruncate(descriptor, 0) == 0 else { throw FileSystem.failure("be emptied", path) }
    }

    /// Writes at the end.
    package func append(_ bytes: UnsafeRawBufferPointer) throws {
        try FileSystem.write(bytes, to: descriptor, path)
    }

    package func setOwner(_ owner: uid_t, _ group: gid_t) throws {
        guard fchown(descriptor, owner, group) == 0 else { throw FileSystem.failure("be given its owner", path) }
    }

    package func setMode(_ mode: mode_t) throws {
        guard fchmod(descriptor, mode) == 0 else { throw FileSystem.failure("be given its mode", path) }
    }

    /// Gives the file the extended attributes of another.
    ///
    /// Returns the names of those that the system did not let us set.
    package func copyAttributes(of original: PinnedFile) throws -> [String] {
        try original.attributes().compactMap { attribute in
            let result = attribute.name.withUnsafeBufferPointer { name in
                cs_fsetxattr(descriptor, name.baseAddress, attribute.value, attribute.value.count)
            }
            return result == 0 ? nil : attribute.displayName
        }
    }
}
