/// In which way something fails once in a run.
enum Fault: String, CaseIterable, Sendable {
    // Those with the longest series first, so that no processor ends long before the other.
    /// An allocation of SQLite that fails.
    case memory = "MEMORY"
    /// All allocations of SQLite from one on.
    case lastingMemory = "MEMORY+"
    case EIO
    case EACCES
    case EINTR
    case ENOSPC
    /// A limit on the size of files, so that writes are short at every KiB.
    case size = "SIZE"
    /// A write that writes nothing.
    case short = "SHORT"
    /// A write to the copy that a disk acknowledges and forgets.
    case lost = "LOST"

    var isMemory: Bool { self == .memory || self == .lastingMemory }
    /// Whether it goes on to the end of the run.
    var isLasting: Bool { self == .lastingMemory || self == .size }

    /// The system calls that can fail in this way, by their manual pages; a dash for a fault that concerns none.
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
