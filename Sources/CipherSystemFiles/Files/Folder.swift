package import CCipherSystem
internal import CipherErrors
internal import CipherPlatform
internal import CipherPrimitives

/// An open folder, and the names in it.
///
/// Anyone who can write to a folder, or to a folder above it, can replace anything in it with a link at any time. A
/// name is always looked up in the folder that was opened, and links are never followed.
package final class Folder: Sendable {
    /// The path to name in errors.
    let path: String
    package let descriptor: Int32

    package init(_ path: String) throws {
        let descriptor = path.withSystemPath { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw FileSystem.failure("be opened", path, of: "folder", needs: .readAndWrite) }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    package func path(of name: String) -> String { path == "/" ? "/" + name : path + "/" + name }

    /// Returns the status of the file with the given name; `nil` if nothing has that name.
    package func status(_ name: String) throws -> FileSystem.Status? {
        var result = stat()
        guard name.withSystemPath({ fstatat(descriptor, $0, &result, AT_SYMLINK_NOFOLLOW) }) == 0 else {
            if errno == ENOENT { return nil }
            throw FileSystem.failure("be examined", path(of: name), needs: .search)
        }
        return FileSystem.Status(result)
    }

    /// Opens the file with the given name; returns `nil` if nothing has that name.
    ///
    /// The method throws for a link, and does not block on a FIFO or a device.
    package func openFile(_ name: String, forWriting: Bool = true) throws -> Int32? {
        let file = name.withSystemPath {
            openat(descriptor, $0, (forWriting ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        }
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw FileSystem.failure("be opened", path(of: name))
        }
        return file
    }

    /// Creates an empty file, open for reading and writing; throws if anything has the name, even a link.
    ///
    /// - Parameter mode: The permissions of the file, whatever the process's umask.
    package func create(_ name: String, mode: mode_t = 0o600) throws -> Int32 {
        let file = name.withSystemPath {
            openat(descriptor, $0, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, mode)
        }
        guard file >= 0 else { throw FileSystem.failure("be created", path(of: name)) }
        guard mode == 0 || fchmod(file, mode) == 0 else {
            let reason = errno
            close(file)
            _ = name.withSystemPath { unlinkat(descriptor, $0, 0) }
            throw FileSystem.failure("be assigned its permissions", path(of: name), reason)
        }
        return file
    }

    /// Creates a file without a name, open for reading and writing.
    ///
    /// If the file system does not support such files, the file has a random name for a moment.
    package func createNameless() throws -> Int32 {
        let file = cs_open_nameless(descriptor)
        if file >= 0 { return file }
        let name = ".cipherstore-\(try Self.randomName())"
        let named = try create(name)
        unlinkat(descriptor, name, 0)
        return named
    }

    /// Returns sixteen random hexadecimal digits.
    package static func randomName() throws -> String {
        try SecretBytes.random(count: 8).withUnsafeBytes { bytes in
            bytes.reduce(into: "") { text, byte in
                let digits = String(byte, radix: 16)
                text += digits.count == 1 ? "0" + digits : digits
            }
        }
    }

    @discardableResult
    package func removeIfPresent(_ name: String) throws -> Bool {
        guard name.withSystemPath({ unlinkat(descriptor, $0, 0) }) != 0 else { return true }
        if errno == ENOENT { return false }
        throw FileSystem.failure("be removed", path(of: name))
    }

    package func rename(_ old: String, to new: String) throws {
        let result = old.withSystemPath { old in new.withSystemPath { renameat(descriptor, old, descriptor, $0) } }
        guard result == 0 else {
            throw FileSystem.failure("be renamed to \(SystemPath.printable(new))", path(of: old))
        }
    }

    /// Renames a file without replacing another one.
    ///
    /// - Returns: Whether the new name was free.
    package func renameIfFree(_ old: String, to new: String) throws -> Bool {
        let result = old.withSystemPath { old in new.withSystemPath { cs_rename_noreplace(descriptor, old, $0) } }
        guard result != 0 else { return true }
        if errno == EEXIST { return false }
        throw FileSystem.failure("be renamed to \(SystemPath.printable(new))", path(of: old))
    }

    /// Creates a second name (a hard link) for a file, if nothing has that name.
    ///
    /// - Returns: Whether the new name was free.
    /// - Throws: ``StoreError`` with the code `permission` if the file system or the system's rules do not allow hard
    ///   links.
    package func linkIfFree(_ name: String, as new: String) throws -> Bool {
        let result = name.withSystemPath { old in
            new.withSystemPath { linkat(descriptor, old, descriptor, $0, 0) }
        }
        guard result != 0 else { return true }
        if errno == EEXIST { return false }
        throw FileSystem.failure("be hard-linked as \(SystemPath.printable(new))", path(of: name))
    }

    /// Exchanges the names of two files atomically.
    ///
    /// - Returns: `false` if the file system does not support an exchange.
    package func exchange(_ one: String, _ other: String) throws -> Bool {
        let result = one.withSystemPath { one in other.withSystemPath { cs_rename_exchange(descriptor, one, $0) } }
        guard result != 0 else { return true }
        if [EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(errno) { return false }
        throw FileSystem.failure("be renamed to \(SystemPath.printable(other))", path(of: one))
    }

    /// Makes the names durable.
    ///
    /// - Returns: `false` if the file system does not support syncing a folder and reports EINVAL.
    @discardableResult
    package func sync() throws -> Bool {
        if syncToDisk(descriptor) { return true }
        guard errno == EINVAL else { throw FileSystem.failure("be synced", path, of: "folder") }
        return false
    }
}
