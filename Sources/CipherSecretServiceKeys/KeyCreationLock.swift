internal import CipherPlatform
internal import CipherPrimitives
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSystemFiles

/// A lock that prevents the user's other processes from storing a new key at the same moment, because a Secret Service
/// has no operation that stores an item only if it does not exist.
///
/// The lock is a separate file, not a folder, because a folder may contain a database and already be locked by
/// ``UpgradeLock``.
enum KeyCreationLock {
    /// Runs `body` while no other process of this user, and no other thread of this process, holds the lock.
    ///
    /// - Throws: ``StoreError`` with the code `permission` or `inputOutput` if the lock cannot be acquired; any error
    ///   thrown by `body`.
    static func withLock<Result>(_ body: () throws -> Result) throws -> Result {
        let path = try folder() + "/.cipherstore-new-key"
        let descriptor = path.withSystemPath { open($0, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600) }
        guard descriptor >= 0 else { throw FileSystem.failure("be created", path) }
        // The file stays: removing it would let one process lock the old file and another a new one.
        defer { close(descriptor) }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw FileSystem.failure("be locked", path) }
        }
        return try body()
    }

    /// Returns the runtime folder of the user's session, or the account's home folder.
    private static func folder() throws -> String {
        if let folder = ProcessEnvironment.value(of: "XDG_RUNTIME_DIR") {
            let path = folder.withUnsafeBytes { SystemPath.text($0) }
            if try FileSystem.status(path)?.isDirectory == true { return path }
        }
        guard let account = getpwuid(geteuid()), let home = account.pointee.pw_dir else {
            throw StoreError(
                .keyStoreUnavailable,
                "a new key cannot be created, because there is no folder for its lock file: XDG_RUNTIME_DIR does not "
                    + "contain the path of a folder, and this user has no home folder",
                advice: "set XDG_RUNTIME_DIR to a folder that belongs to this user")
        }
        return SystemPath.text(cString: home)
    }
}
