internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// The bytes of a `-wal` or `-journal` file.
///
/// SQLite never locks such a file, so opening and closing it here drops no locks.
package final class SidecarFile: ByteSource {
    package let path: String
    package let size: Int64
    private let descriptor: Int32

    // A FIFO in the file's place must not block the thread that opens it.
    private static let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC

    /// Opens a sidecar file; returns `nil` if it does not exist, is empty or is not a regular file.
    ///
    /// The file is opened before it is examined, because the process that closes the last connection may remove it at
    /// any moment.
    package init?(_ path: String) throws {
        let descriptor = path.withSystemPath { CipherPlatform.open($0, Self.flags) }
        guard descriptor >= 0 else {
            // A socket cannot be opened, but it is not a regular file either.
            if errno == ENOENT || errno == ENXIO { return nil }
            throw FileSystem.failure("be opened", path)
        }
        do {
            let status = try FileSystem.status(ofDescriptor: descriptor, path)
            guard status.isRegular, status.size > 0 else {
                close(descriptor)
                return nil
            }
            size = status.size
        } catch {
            close(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    /// Opens the same file again with its current size, even if another file now has its name.
    package init(measuredAnew file: SidecarFile) throws {
        path = file.path
        descriptor = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { throw FileSystem.failure("be opened", path) }
        size = try FileSystem.status(ofDescriptor: descriptor, path).size
    }

    deinit { close(descriptor) }

    package func lend(
        at offset: Int64, count: Int, _ scratch: UnsafeMutableRawBufferPointer
    ) throws -> UnsafeRawBufferPointer? {
        let result = pread(descriptor, scratch.baseAddress, count, off_t(offset))
        guard result >= 0 else { throw FileSystem.failure("be read", path) }
        return result == count ? UnsafeRawBufferPointer(rebasing: scratch[..<count]) : nil
    }
}
