package import CCipherSystem
internal import CipherErrors
internal import CipherPrimitives

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A folder that is open, and the names in it.
///
/// Whoever can write a folder, or one above it, can put a link in the place of anything there at any time. A name that is
/// looked up here is one of the folder that was opened, and is never followed.
package final class Folder: Sendable {
    /// What errors name.
    let path: String
    package let descriptor: Int32

    package init(_ path: String) throws {
        let descriptor = path.withSystemPath { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw FileSystem.failure("be opened", path) }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    package func path(of name: String) -> String { path == "/" ? "/" + name : path + "/" + name }

    /// The status of what has a name, `nil` where there is nothing.
    package func status(_ name: String) throws -> FileSystem.Status? {
        var result = stat()
        guard name.withSystemPath({ fstatat(descriptor, $0, &result, AT_SYMLINK_NOFOLLOW) }) == 0 else {
            if errno == ENOENT { return nil }
            throw FileSystem.failure("be examined", path(of: name))
        }
        return FileSystem.Status(result)
    }

    /// Opens what has a name; `nil` where there is nothing.
    ///
    /// A link is refused, and a FIFO or device does not block.
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

    /// Makes an empty file where there is nothing, not even a link, and opens it for reading and writing.
    ///
    /// - Parameter mode: Its permissions, of which the mask of the process takes none away.
    package func create(_ name: String, mode: mode_t = 0o600) throws -> Int32 {
        let file = name.withSystemPath {
            openat(descriptor, $0, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, mode)
        }
        guard file >= 0 else { throw FileSystem.failure("be created", path(of: name)) }
        guard mode == 0 || fchmod(file, mode) == 0 else {
            let reason = errno
            close(file)
            _ = name.withSystemPath { unlinkat(descriptor, $0, 0) }
            throw FileSystem.failure("be given its mode", path(of: name), reason)
        }
        return file
    }

    /// Opens a new file that has no name, for reading and writing.
    ///
    /// Where the file system has no such files it has a random name for a moment.
    package func createNameless() throws -> Int32 {
        let file = cs_open_nameless(descriptor)
        if file >= 0 { return file }
        let name = ".cipherstore-\(try Self.randomName())"
        let named = try create(name)
        unlinkat(descriptor, name, 0)
        return named
    }

    /// Sixteen hexadecimal digits that no one has used.
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

    /// Renames and replaces nothing.
    ///
    /// Returns whether the new name was free.
    package func renameIfFree(_ old: String, to new: String) throws -> Bool {
        let result = old.withSystemPath { old in new.withSystemPath { cs_rename_noreplace(descriptor, old, $0) } }
        guard result != 0 else { return true }
        if errno == EEXIST { return false }
        throw FileSystem.failure("be renamed to \(SystemPath.printable(new))", path(of: old))
    }

    /// Gives a file a second name (a hard link), where nothing has that name.
    ///
    /// - Returns: Whether the new name was free.
    /// - Throws: ``StoreError``, with `permission` if the file system or the system's rules allow no hard links.
    package func linkIfFree(_ name: String, as new: String) throws -> Bool {
        let result = name.withSystemPath { old in
            new.withSystemPath { linkat(descriptor, old, descriptor, $0, 0) }
        }
        guard result != 0 else { return true }
        if errno == EEXIST { return false }
        throw FileSystem.failure("be given the second name \(SystemPath.printable(new))", path(of: name))
    }

    /// Gives each of two files the other's name, in one step.
    ///
    /// Returns `false` if the file system cannot do that.
    package func exchange(_ one: String, _ other: String) throws -> Bool {
        let result = one.withSystemPath { one in other.withSystemPath { cs_rename_exchange(descriptor, one, $0) } }
        guard result != 0 else { return true }
        if [EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(errno) { return false }
        throw FileSystem.failure("be renamed to \(SystemPath.printable(other))", path(of: one))
    }

    /// Makes the names durable.
    ///
    /// - Returns: `false` if the file system cannot do that, and says so with EINVAL.
    @discardableResult
    package func sync() throws -> Bool {
        if fsync(descriptor) == 0 { return true }
        guard errno == EINVAL else { throw FileSystem.failure("be synced", path) }
        return false
    }
}
