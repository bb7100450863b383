internal import CSystemShims
package import CipherSQLite

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Makes key files.
package enum KeyFile {
    /// Stores a key in a new file that only this user can read.
    ///
    /// The file appears under its name with its whole content, and is on the disk when this returns.
    ///
    /// - Returns: `false` where there is a file of that name already, which is left as it is.
    /// - Throws: ``StoreError`` with `missingFile` for a missing folder, `permission`, `noSpace` or `inputOutput`.
    ///   Nothing is left behind, except where the folder could not be synced: another process may use the new key by
    ///   then, so the file stays.
    package static func create(_ path: String, key: CipherKey) throws -> Bool {
        guard try FileSystem.status(FileSystem.split(path).folder)?.isDirectory == true else {
            throw StoreError(
                .missingFile, path: path, "there is no such folder for the new key file",
                advice: "make the folder first")
        }
        let temporary = FileName.sibling(temporaryName(), of: path)
        let descriptor = temporary.withSystemPath {
            open($0, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
        guard descriptor >= 0 else { throw FileSystem.failure("be created", path) }
        do {
            defer { close(descriptor) }
            try write(key, to: descriptor, path)
        } catch {
            _ = temporary.withSystemPath { unlink($0) }
            throw error
        }
        let result = temporary.withSystemPath { old in path.withSystemPath { cs_rename_noreplace(old, $0) } }
        guard result == 0 else {
            let reason = errno
            _ = temporary.withSystemPath { unlink($0) }
            if reason == EEXIST { return false }
            throw FileSystem.failure("be created", path, reason)
        }
        try FileSystem.syncFolder(of: path)
        return true
    }

    private static func write(_ key: CipherKey, to descriptor: CInt, _ path: String) throws {
        // The mask of the process may have taken rights away that the owner needs.
        guard fchmod(descriptor, 0o600) == 0 else { throw FileSystem.failure("be given its mode", path) }
        let text = key.text
        let line = SecretBytes(count: text.count + 1) { buffer in
            text.withUnsafeBytes { buffer.copyMemory(from: $0) }
            buffer[text.count] = UInt8(ascii: "\n")
        }
        try line.withUnsafeBytes { try FileSystem.write($0, to: descriptor, path) }
        guard syncToDisk(descriptor) else { throw FileSystem.failure("be synced", path) }
    }

    private static func temporaryName() -> String {
        ".cipherstore-key-\(String(UInt64.random(in: .min ... .max), radix: 16))"
    }
}
