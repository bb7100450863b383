internal import CCipherSystem
internal import CipherErrors
internal import CipherPlatform
package import CipherPrimitives

/// An open file of a few kilobytes that people or tools write: a configuration, a key, a version record.
///
/// Every check uses the open descriptor, so a file that is swapped in between cannot pass a check made on another file.
/// Symbolic links are followed, because secrets are often mounted through them. Never use this for a database: closing
/// the descriptor would drop SQLite's locks.
package struct SmallFile: ~Copyable {
    /// The reason that a file cannot be read.
    package enum Failure: Error, Equatable {
        case missing
        case notRegular
        case larger(than: Int)
        case system(CInt)

        /// Whether the file is larger than the caller's limit.
        package var isTooLarge: Bool {
            if case .larger = self { true } else { false }
        }
    }

    private let descriptor: CInt
    private let status: stat

    /// Opens a regular file; for a FIFO or a device it throws and does not block.
    package init(path: String) throws(Failure) {
        let descriptor =
            path.utf8.contains(0)
            ? -1 : path.withSystemPath { open($0, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) }
        guard descriptor >= 0 else {
            throw path.utf8.contains(0) || errno == ENOENT || errno == ENOTDIR ? .missing : .system(errno)
        }
        var status = stat()
        let failure: Failure? =
            if fstat(descriptor, &status) != 0 {
                .system(errno)
            } else if status.st_mode & S_IFMT != S_IFREG {
                .notRegular
            } else {
                nil
            }
        if let failure {
            close(descriptor)
            throw failure
        }
        self.descriptor = descriptor
        self.status = status
    }

    deinit {
        close(descriptor)
    }

    /// Whether the group or other users have any access.
    package var isOpenToOthers: Bool { status.st_mode & 0o077 != 0 }
    /// Whether the file belongs to the user of this process, or to root.
    package var belongsToUser: Bool { status.st_uid == geteuid() || status.st_uid == 0 }

    /// Returns the whole file.
    package func bytes(limit: Int) throws(Failure) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: limit + 1)
        let outcome = result.withUnsafeMutableBytes { fill($0) }
        let count = try outcome.get()
        guard count <= limit else { throw .larger(than: limit) }
        return Array(result[..<count])
    }

    /// Returns the whole file as a secret; no other copy of its bytes is left in memory.
    package func secret(limit: Int) throws(Failure) -> SecretBytes {
        var outcome = Result<Int, Failure>.success(0)
        let whole = SecretBytes(count: limit + 1) { outcome = fill($0) }
        let count = try outcome.get()
        guard count <= limit else { throw .larger(than: limit) }
        return whole.withUnsafeBytes { bytes in
            SecretBytes(count: count) { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
        }
    }

    /// Makes the file's bytes durable; if it returns `false`, `errno` contains the reason.
    package func sync() -> Bool {
        syncToDisk(descriptor)
    }

    private func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Result<Int, Failure> {
        var count = 0
        while count < buffer.count {
            let part = read(descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count)
            if part < 0, errno == EINTR { continue }
            guard part >= 0 else { return .failure(.system(errno)) }
            guard part > 0 else { break }
            count += part
        }
        return .success(count)
    }
}

extension SmallFile.Failure: CustomStringConvertible {
    /// The failure as the end of a sentence about the file.
    package var description: String {
        switch self {
        case .missing: "there is no such file"
        case .notRegular: "it is not a regular file"
        case .larger(let limit): "it is larger than \(limit / 1024) KiB"
        case .system(let code): "it could not be read: \(systemMessage(code))"
        }
    }
}

/// Returns the system's text for an error number.
func systemMessage(_ code: CInt) -> String {
    strerror(code).map { String(cString: $0) } ?? "error \(code)"
}

/// Makes a descriptor's bytes durable on the disk itself; if it returns `false`, `errno` contains the reason.
package func syncToDisk(_ descriptor: CInt) -> Bool { cs_sync_to_disk(descriptor) == 0 }

extension SmallFile {
    /// Returns whether two paths name the same file, without opening either file.
    package static func isSame(_ left: String, _ right: String) -> Bool {
        var first = stat()
        var second = stat()
        return left.withSystemPath { stat($0, &first) } == 0 && right.withSystemPath { stat($0, &second) } == 0
            && first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }

    /// Returns whether an error number means that access is denied.
    package static func isPermission(_ code: CInt) -> Bool { code == EACCES || code == EPERM }
}
