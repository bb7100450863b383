/// The way in which a call or an allocation fails in a run.
enum Fault: String, CaseIterable, Sendable {
    // Faults with the longest series come first, so that all processors finish at about the same time.
    /// One allocation in SQLite fails.
    case memory = "MEMORY"
    /// One allocation in SQLite and all later ones fail.
    case lastingMemory = "MEMORY+"
    case EIO
    case EACCES
    case EINTR
    case ENOSPC
    /// A limit on the size of files, so that a write is short; there is a run for every KiB.
    case size = "SIZE"
    /// A write that writes nothing.
    case short = "SHORT"
    /// A write to the copy that the disk acknowledges and discards.
    case lost = "LOST"

    var isMemory: Bool { self == .memory || self == .lastingMemory }
    /// Whether the fault lasts until the end of the run.
    var isLasting: Bool { self == .lastingMemory || self == .size }

    /// The system calls that can fail in this way, according to their manual pages; a dash for a fault that concerns
    /// none.
    var calls: [String] {
        switch self {
        case .EIO:
            [
                "openat", "read", "pread64", "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat2", "linkat",
                "unlink", "unlinkat", "ftruncate", "fchmod", "fchown", "fsetxattr", "fremovexattr", "flock", "mmap",
                "newfstatat",
                "fstat", "fcntl", "access", "readlink", "listxattr",
            ]
        case .ENOSPC:
            [
                "openat", "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat2", "linkat", "ftruncate",
                "fsetxattr",
            ]
        case .EACCES:
            [
                "openat", "rename", "renameat2", "linkat", "unlink", "unlinkat", "fchmod", "fchown", "fsetxattr",
                "fremovexattr",
                "mmap", "fcntl", "newfstatat", "access", "readlink",
            ]
        case .EINTR:
            [
                "openat", "read", "pread64", "write", "pwrite64", "fsync", "ftruncate", "fchmod", "fchown", "fcntl",
                "flock",
            ]
        case .short: ["write", "pwrite64"]
        case .lost: ["pwrite64"]
        case .memory, .lastingMemory, .size: ["-"]
        }
    }
}
