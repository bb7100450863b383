package import CCipherSystem
package import CipherErrors
internal import CipherPlatform

/// The system calls of the upgrade, with typed errors.
///
/// No function of this type opens a database file. Only ``DatabaseFile`` does, to preserve SQLite's locks.
package enum FileSystem {
    /// The system's information about a file.
    package struct Status {
        package let isRegular: Bool
        package let isDirectory: Bool
        package let isSymbolicLink: Bool
        package let size: Int64
        package let mode: mode_t
        package let owner: uid_t
        package let group: gid_t
        package let links: Int
        package let identity: FileIdentity
        /// The time of the last change to the file's content: seconds and nanoseconds.
        package let modified: [Int]

        init(_ status: stat) {
            isRegular = status.st_mode & S_IFMT == S_IFREG
            isDirectory = status.st_mode & S_IFMT == S_IFDIR
            isSymbolicLink = status.st_mode & S_IFMT == S_IFLNK
            size = Int64(status.st_size)
            mode = status.st_mode & 0o7777
            owner = status.st_uid
            group = status.st_gid
            links = Int(status.st_nlink)
            identity = FileIdentity(status)
            modified = [Int(status.modified.tv_sec), Int(status.modified.tv_nsec)]
        }
    }

    /// Returns the status of the file or folder at a path; `nil` if nothing exists there.
    package static func status(_ path: String, followLinks: Bool = true) throws -> Status? {
        var result = stat()
        guard path.withSystemPath({ followLinks ? stat($0, &result) : lstat($0, &result) }) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure("be examined", path, needs: .search)
        }
        return Status(result)
    }

    package static func status(ofDescriptor descriptor: Int32, _ path: String) throws -> Status {
        var result = stat()
        guard fstat(descriptor, &result) == 0 else { throw failure("be examined", path) }
        return Status(result)
    }

    /// Throws if the file is not a regular file, because SQLite would block forever on a FIFO.
    package static func checkRegular(_ status: Status, _ path: String) throws {
        guard status.isRegular else {
            throw StoreError(
                .notAFile, path: path, status.isDirectory ? "this is a directory" : "this is not a regular file",
                advice: "pass the path of a database file")
        }
    }

    /// Returns the size of a file; `nil` if it does not exist.
    package static func size(_ path: String) throws -> Int64? {
        try status(path)?.size
    }

    package static func exists(_ path: String) throws -> Bool {
        try status(path, followLinks: false) != nil
    }

    /// Returns the path without symbolic links.
    ///
    /// The last component may be missing, but its folder must exist.
    package static func resolve(_ path: String) throws -> String {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(
                .missingFile, path: path, "the path is empty or contains a NUL character",
                advice: "pass the path of a database")
        }
        // Between two checks, a file may be renamed into place, or the target of a link may be created.
        for _ in 0..<looks {
            if let whole = realPath(path) {
                try checkLink(path, to: whole)
                return whole
            }
            guard errno == ENOENT else { throw failure("be found", path, needs: .search) }
            guard let found = try status(path, followLinks: false) else { return try resolveMissing(path) }
            guard try !found.isSymbolicLink || status(path) != nil else {
                throw StoreError(
                    .notAFile, path: path, "the target of this symbolic link does not exist",
                    advice: "correct or remove the link")
            }
        }
        throw changing(path)
    }

    /// The number of attempts to examine a file that keeps changing.
    package static let looks = 100

    package static func changing(_ path: String) -> StoreError {
        .busy(path, "another program keeps replacing or removing the file", retry: .afterSearching)
    }

    private static func resolveMissing(_ path: String) throws -> String {
        let (folder, name) = split(path)
        guard let resolved = realPath(folder) else {
            throw StoreError.missingFolder(path)
        }
        return resolved == "/" ? "/" + name : resolved + "/" + name
    }

    /// Throws for a link with which another user could redirect root to a file that does not belong to that user.
    ///
    /// Source: proc(5), `protected_symlinks`, which does the same in sticky folders.
    private static func checkLink(_ path: String, to target: String) throws {
        guard geteuid() == 0, let link = try status(path, followLinks: false), link.isSymbolicLink, link.owner != 0,
            let file = try status(target), link.owner != file.owner
        else { return }
        throw StoreError(
            .permission, path: path,
            "this symbolic link and its target belong to different users, so root does not follow the link",
            advice: "pass the path of the link's target", changed: .nothing)
    }

    private static func realPath(_ path: String) -> String? {
        guard let resolved = path.withSystemPath({ realpath($0, nil) }) else { return nil }
        defer { free(resolved) }
        return SystemPath.text(cString: resolved)
    }

    /// Returns the folder and the last component of a path.
    package static func split(_ path: String) -> (folder: String, name: String) {
        // The search is by byte, because a name may begin with a combining mark, which would form one character with
        // the slash.
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (".", path) }
        let folder = path[..<slash]
        return (folder.isEmpty ? "/" : String(folder), String(path[path.utf8.index(after: slash)...]))
    }

    /// Creates a folder with mode 0700 if nothing exists at the path, and makes the new name durable.
    package static func createFolder(_ path: String) throws {
        guard path.withSystemPath({ mkdir($0, 0o700) }) != 0 else {
            try syncFolder(of: path)
            return
        }
        guard errno == EEXIST else { throw failure("be created", path, of: "folder") }
    }

    /// Removes a folder if it is empty, but not a link to a folder.
    package static func removeFolderIfEmpty(_ path: String) throws {
        guard path.withSystemPath({ rmdir($0) }) != 0, ![ENOENT, ENOTEMPTY, EEXIST, ENOTDIR].contains(errno)
        else { return }
        throw failure("be removed", path, of: "folder")
    }

    /// Writes all bytes at the descriptor's position.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ path: String) throws {
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            let count = CipherPlatform.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("be written", path, count < 0 ? errno : ENOSPC) }
            written += count
        }
    }

    /// Returns the text of a small file; `nil` if it does not exist.
    static func readText(_ path: String, limit: Int = 4096) throws -> String? {
        let descriptor = path.withSystemPath { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw failure("be opened", path)
        }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = read(descriptor, &buffer, limit)
        guard count >= 0 else { throw failure("be read", path) }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    @discardableResult
    package static func removeIfPresent(_ path: String) throws -> Bool {
        guard path.withSystemPath({ unlink($0) }) != 0 else { return true }
        if errno == ENOENT { return false }
        throw failure("be removed", path)
    }

    /// Makes the names in a folder durable.
    ///
    /// - Returns: `false` if the file system does not support syncing a folder and reports EINVAL.
    @discardableResult
    package static func syncFolder(of path: String) throws -> Bool {
        try Folder(split(path).folder).sync()
    }

    /// Returns whether this process may set a new file's owner to that of another file.
    package static func canTakeOwner(_ status: Status) -> Bool { geteuid() == 0 || geteuid() == status.owner }

    /// Returns whether this process may set the group of a new file in a folder to that of another file, or the new
    /// file has that group anyway.
    package static func canTakeGroup(_ status: Status, in folder: Status) -> Bool {
        if geteuid() == 0 || getegid() == status.group { return true }
        if folder.mode & S_ISGID != 0, folder.group == status.group { return true }
        var groups = [gid_t](repeating: 0, count: Int(max(0, getgroups(0, nil))))
        let count = getgroups(Int32(groups.count), &groups)
        return groups.prefix(Int(max(0, count))).contains(status.group)
    }

    package static func canWrite(_ path: String) -> Bool { isGranted(path, W_OK) }
    package static func canWriteInFolder(_ path: String) -> Bool { isGranted(path, W_OK | X_OK) }
    package static func canRead(_ path: String) -> Bool { isGranted(path, R_OK) }

    /// Returns whether access is not denied.
    ///
    /// If the file no longer exists, the operation itself reports that.
    private static func isGranted(_ path: String, _ mode: Int32) -> Bool {
        path.withSystemPath { access($0, mode) } == 0 || errno == ENOENT
    }

    /// Returns how many bytes this process may still write in a folder under the file system's and its own limits.
    package static func freeSpace(_ folder: String) throws -> (disk: Int64, fileSizeLimit: Int64?) {
        var status = statvfs()
        guard folder.withSystemPath({ statvfs($0, &status) }) == 0 else {
            throw failure("be checked for free space", folder, of: "folder")
        }
        let (bytes, overflow) = Int64(clamping: status.f_bavail)
            .multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
        var limit = rlimit()
        let known = getFileSizeLimit(&limit) == 0
        let fileSizeLimit = known && limit.rlim_cur < rlim_t(Int64.max) ? Int64(limit.rlim_cur) : nil
        return (overflow ? .max : bytes, fileSizeLimit)
    }

    /// Removes the access control list that a new file inherited from its folder, because the original may have
    /// another list, or none.
    ///
    /// While the mode is 0600, the list grants no access.
    package static func dropInheritedAccess(_ descriptor: Int32, _ path: String) throws {
        #if os(Linux) && !CIPHERSTORE_PORTABLE
            guard cs_fremovexattr(descriptor, "system.posix_acl_access") != 0 else { return }
            guard [ENODATA, ENOTSUP, EOPNOTSUPP].contains(errno) else {
                throw failure("be stripped of its inherited access control list", path)
            }
        #endif
    }

    /// Returns the error of a system call.
    ///
    /// - Parameters:
    ///   - kind: What the path refers to: a file or a folder.
    ///   - access: The access that the user needs if the system refused it.
    package static func failure(
        _ action: String, _ path: String, _ reason: Int32 = errno, of kind: String = "file",
        needs access: StoreError.Access = .writeWithFolder
    ) -> StoreError {
        let text = String(cString: strerror(reason))
        switch reason {
        case ENOENT, ENOTDIR:
            return StoreError.missingFile(path)
        case EACCES, EPERM, EROFS:
            return .permission(path, "the \(kind) could not \(action): \(text)", access)
        case ELOOP:
            return StoreError(
                .notAFile, path: path,
                "the path contains a symbolic link that refers to itself or that CipherStore does not follow",
                advice: "correct or remove the link", changed: .nothing)
        case ENAMETOOLONG:
            return StoreError(
                .nameTaken, path: path, "the file name is too long for the file system",
                advice: "choose a shorter name", changed: .nothing)
        case EMFILE, ENFILE:
            return .tooManyOpenFiles(path)
        case ENOSPC, EDQUOT, EFBIG:
            return .noSpace(path, "the \(kind) could not \(action): \(text)")
        default:
            return .disk(path, "the \(kind) could not \(action): \(text)")
        }
    }
}
