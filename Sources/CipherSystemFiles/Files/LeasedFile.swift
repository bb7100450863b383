internal import CCipherSystem
internal import CipherErrors
internal import CipherPlatform

/// A database file that is not open anywhere else: a file descriptor with a write lease.
///
/// The kernel grants a write lease only while no other descriptor of the file is open in any process, and a later
/// `open` waits until the lease has ended. Only Linux has write leases. The descriptor is not SQLite's. If it were
/// opened and closed while SQLite has the file open in this process, SQLite's locks would be dropped, so this process's
/// descriptors are examined first.
/// Source: fcntl(2), "Leases"; SQLite, "How To Corrupt An SQLite Database File", section 2.2.
package final class LeasedFile {
    /// The result of requesting the lease.
    package enum Answer {
        case granted(LeasedFile)
        /// The file is open elsewhere.
        case inUse(FileUsers)
        /// Leases are not available, for the associated reason.
        case unavailable(String)
    }

    private let descriptor: Int32
    private let path: String

    private init(_ descriptor: Int32, _ path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        // Closing releases this process's locks on the file first and the lease last, so a waiting `open` continues
        // afterwards.
        let descriptor = descriptor
        guard takesLongToClose else {
            close(descriptor)
            return
        }
        do {
            try DetachedThread.start("close") { close(descriptor) }
        } catch {
            close(descriptor)
        }
    }

    /// Whether closing frees the content of a large file that has no name any more, which takes 90 ms for 430 MB.
    private var takesLongToClose: Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_nlink == 0 && status.st_size > 4 << 20
    }

    /// Requests a lease on a file.
    ///
    /// - Throws: ``StoreError`` if the file cannot be opened for writing, or with the code `busy` if it was replaced.
    static func ask(_ file: OriginalFile) throws -> Answer {
        guard !file.isOpenHere() else { return .inUse(.thisProcess) }
        let descriptor = file.path.withSystemPath { open($0, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
        guard descriptor >= 0 else {
            // Another program has a lease, for example a file server.
            if errno == EWOULDBLOCK { return .inUse(file.otherUsers()) }
            if errno == ENOENT || errno == ELOOP { throw file.replaced() }
            throw FileSystem.failure("be opened", file.path)
        }
        let leased = LeasedFile(descriptor, file.path)
        guard file.isAt(descriptor) else { throw file.replaced() }
        guard cs_lease_is_local(descriptor) != 0 else {
            return .unavailable("the file system may be shared with another machine")
        }
        guard cs_lease_take(descriptor) != 0 else { return .granted(leased) }
        let reason = errno
        if reason == EAGAIN || reason == EWOULDBLOCK { return .inUse(file.otherUsers()) }
        return .unavailable(String(cString: strerror(reason)))
    }

    /// Takes SQLite's exclusive lock, which is held as long as the descriptor is open.
    package func lock() throws {
        guard cs_lock_database(descriptor) == 0 else { throw FileSystem.failure("be locked", path) }
    }

    /// Whether no process is waiting for the lease to end in order to open this file.
    package var isWhole: Bool { cs_lease_is_whole(descriptor) != 0 }

    /// Ends the lease, so that a waiting `open` continues.
    ///
    /// The lock is still held afterwards.
    package func endLease() { cs_lease_end(descriptor) }

    /// Returns up to `count` bytes from the beginning.
    func read(count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var used = 0
        while used < count {
            let got = bytes[used...].withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, off_t(used)) }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw FileSystem.failure("be read", path) }
            guard got > 0 else { break }
            used += got
        }
        return Array(bytes.prefix(used))
    }

    /// Returns the state of the file, whatever its current name.
    package func state() throws -> OriginalFile.State {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw FileSystem.failure("be examined", path) }
        return OriginalFile.State(status, start: try read(count: OriginalFile.State.length))
    }

    /// Overwrites the beginning of the file, and makes the change durable.
    package func overwrite(_ bytes: [UInt8]) throws {
        let written = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        guard written == bytes.count else {
            throw FileSystem.failure("be overwritten", path, written < 0 ? errno : EIO)
        }
        guard syncToDisk(descriptor) else { throw FileSystem.failure("be synced", path) }
    }
}
