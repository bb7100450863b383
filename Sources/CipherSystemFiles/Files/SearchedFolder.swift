package import CipherErrors
internal import CipherPlatform

/// A folder that stays the same while it is searched, even if its name then leads to another folder.
package final class SearchedFolder {
    package let path: String
    package let identity: FileIdentity
    private let descriptor: Int32

    /// Opens a folder, without following a symbolic link of that name.
    ///
    /// - Parameter seen: The folder that was found under this name before; `nil` for the first folder.
    /// - Throws: ``StoreError`` with the code `busy` if the name now leads to another folder; `permission`,
    ///   `missingFile` or `inputOutput`.
    package init(_ path: String, seen: FileIdentity? = nil) throws {
        let descriptor = path.withSystemPath { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        guard descriptor >= 0 else { throw FileSystem.failure("be read", path, of: "folder", needs: .read) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            let reason = errno
            close(descriptor)
            throw FileSystem.failure("be read", path, reason, of: "folder")
        }
        self.path = path
        self.descriptor = descriptor
        identity = FileIdentity(status)
        guard seen == nil || seen == identity else { throw Self.replaced(path) }
    }

    deinit { close(descriptor) }

    package static func replaced(_ path: String) -> StoreError {
        StoreError(
            .busy, path: path, "the file was replaced after the folder was searched",
            advice: "run the command again", changed: .nothing)
    }

    /// Returns the names in the folder, in byte order.
    package func names() throws -> [String] {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0, let stream = fdopendir(copy) else {
            let reason = errno
            if copy >= 0 { close(copy) }
            throw FileSystem.failure("be read", path, reason, of: "folder")
        }
        defer { closedir(stream) }
        return try FileSystem.names(path) { readdir(stream) }
    }

    /// Returns the status of a name in the folder; symbolic links are not followed.
    package func status(of name: String) throws -> FileSystem.Status? {
        var status = stat()
        guard name.withSystemPath({ fstatat(descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) }) == 0 else {
            if errno == ENOENT { return nil }
            throw FileSystem.failure("be examined", FileName.inFolder(path, name), needs: .search)
        }
        return FileSystem.Status(status)
    }
}
