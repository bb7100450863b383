#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Which inodes the files of a state had where they were made.
///
/// A folder in which the state is laid out has others.
struct Inodes: Sendable {
    private var numbers: [String: Int] = [:]

    init() {}

    /// Those of a folder that was read, whose files have their inodes for numbers.
    init(of state: FolderState) {
        for number in state.numbers.values { numbers[String(number)] = number }
    }

    /// Takes note of the file that is at a path.
    mutating func note(_ path: String, _ file: Int?) {
        guard let file, let inode = Self.inode(path), !numbers.values.contains(file) else { return }
        numbers[String(inode)] = file
    }

    /// The number of the file whose inode a record tells.
    func number(_ inode: String) -> Int? { numbers[inode] }

    static func inode(_ path: String) -> Int? {
        var status = stat()
        return lstat(path, &status) == 0 ? Int(status.st_ino) : nil
    }
}
