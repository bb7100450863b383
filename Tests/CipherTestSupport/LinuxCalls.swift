/// The system calls that only Linux has: leases, `O_TMPFILE`, `O_PATH`, `/proc`, `renameat2` and others.
public enum LinuxCalls {
    /// Whether the library uses these calls; `Scripts/test --portable` builds it without them.
    public static var areUsed: Bool {
        #if os(Linux) && !CIPHERSTORE_PORTABLE
            true
        #else
            false
        #endif
    }

    /// The call that puts the copy in the database's place, as strace names it.
    public static var swap: String { areUsed ? "renameat2" : "renameat" }
}

extension [String] {
    /// The warnings of a report, except the one that each replacement of a file adds on a system without leases.
    public var besidesLeases: [String] {
        if LinuxCalls.areUsed { return self }
        return filter {
            !$0.contains("it could not be determined whether another process has the old file open (")
        }
    }
}
