import CipherPlatform

/// Reads and writes whole files.
///
/// Children do not inherit the descriptors, because a conversion asks the system who has its file open.
enum FileBytes {
    static func read(_ path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw TrialError(detail: "\(path) cannot be opened: \(errno)") }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw TrialError(detail: "\(path) has no status") }
        let size = Int(status.st_size)
        return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            while count < size {
                let part = pread(descriptor, buffer.baseAddress.map { $0 + count }, size - count, off_t(count))
                guard part > 0 else { throw TrialError(detail: "\(path) cannot be read: \(errno)") }
                count += part
            }
        }
    }

    static func write(_ bytes: [UInt8], to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw TrialError(detail: "\(path) cannot be created: \(errno)") }
        defer { close(descriptor) }
        var count = 0
        while count < bytes.count {
            let part = bytes[count...].withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(count)) }
            guard part > 0 else { throw TrialError(detail: "\(path) cannot be written: \(errno)") }
            count += part
        }
    }
}
