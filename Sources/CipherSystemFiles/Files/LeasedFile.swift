internal import CCipherSystem
internal import CipherErrors

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A database file that no one else has open: a descriptor with a write lease.
///
/// The kernel grants such a lease only while no other descriptor of the file is open in any process, and an `open` that
/// comes later waits until the lease has ended. Linux alone has it.
/// The descriptor is not SQLite's. Opened and closed while SQLite has the file open in this process, it would drop
/// SQLite's locks, so this process's descriptors are looked at first.
/// Source: fcntl(2), "Leases"; SQLite, "How To Corrupt An SQLite Database File", section 2.2.
package final class LeasedFile {
    /// What came of asking for the lease.
    package enum Answer {
        case granted(LeasedFile)
        /// Somebody has the file open.
        case inUse(FileUsers)
        /// There are no leases here, for this reason.
        case unavailable(String)
    }

    private let descriptor: Int32
    private let path: String

    private init(_ descriptor: Int32, _ path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        // Closing ends the lease too, after this process's locks on the file: an `open` that waits comes afterwards.
        close(descriptor)
    }

    /// Asks for a lease on a file.
    ///
    /// - Throws: ``StoreError`` where the file cannot be opened for writing, and `busy` if it was replaced.
    static func ask(_ file: OriginalFile) throws -> Answer {
        guard !file.isOpenHere() else { return .inUse(.thisProcess) }
        let descriptor = file.path.withSystemPath { open($0, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
        guard descriptor >= 0 else {
            // Another program's lease, as a file server takes one.
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

    /// Takes SQLite's exclusive lock, which stays for as long as the descriptor is open.
    package func lock() throws {
        guard cs_lock_database(descriptor) == 0 else { throw FileSystem.failure("be locked", path) }
    }

    /// Whether no one waits for the lease to end, to have this file open then.
    package var isWhole: Bool { cs_lease_is_whole(descriptor) != 0 }

    /// Lets go of whoever waits.
    ///
    /// The lock stays.
    package func endLease() { cs_lease_end(descriptor) }

    /// Up to `count` bytes from the beginning.
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

    /// The status of the file, whatever its name is by now.
    package func state() throws -> OriginalFile.State {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw FileSystem.failure("be examined", path) }
        return OriginalFile.State(status, start: try read(count: OriginalFile.State.length))
    }

    /// Overwrites the beginning, and makes that durable.
    package func overwrite(_ bytes: [UInt8]) throws {
        let written = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        guard written == bytes.count else {
            throw FileSystem.failure("be overwritten", path, written < 0 ? errno : EIO)
        }
        guard fsync(descriptor) == 0 else { throw FileSystem.failure("be synced", path) }
    }
}
