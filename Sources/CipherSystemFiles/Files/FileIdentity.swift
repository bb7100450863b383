internal import CipherPlatform

/// The identity of a file or folder, even if its name later refers to another one.
package struct FileIdentity: Hashable, Codable, Sendable {
    let device: UInt64
    package let inode: UInt64

    init(_ status: stat) {
        device = UInt64(truncatingIfNeeded: status.st_dev)
        inode = UInt64(truncatingIfNeeded: status.st_ino)
    }
}
