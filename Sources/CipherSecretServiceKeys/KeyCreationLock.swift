internal import CipherPrimitives
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSystemFiles

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Keeps the user's other processes from storing a new key at the same moment: a Secret Service cannot store an item only
/// if there is none.
///
/// A file of its own and not a folder: a folder may be a database's, and locked by ``UpgradeLock`` already.
enum KeyCreationLock {
    /// Runs `body` while no other process of this user, and no other thread of this one, does.
    ///
    /// - Throws: ``StoreError`` with `permission` or `inputOutput` if the lock cannot be had, and what `body` throws.
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

    /// The folder of the user's session, or the home folder of the account.
    private static func folder() throws -> String {
        if let folder = ProcessEnvironment.value(of: "XDG_RUNTIME_DIR") {
            let path = folder.withUnsafeBytes { SystemPath.text($0) }
            if try FileSystem.status(path)?.isDirectory == true { return path }
        }
        guard let account = getpwuid(geteuid()), let home = account.pointee.pw_dir else {
            throw StoreError(
                .keyStoreUnavailable, "this user has no home folder, so a new key cannot be created safely",
                advice: "set XDG_RUNTIME_DIR to a folder of this user")
        }
        return SystemPath.text(cString: home)
    }
}
