import CipherPlatform

/// The inodes that the files of a state had when they were created.
///
/// In a folder that is created from the state, the files have other inodes.
struct Inodes: Sendable {
    private var numbers: [String: Int] = [:]

    init() {}

    /// The inodes of a folder that was read, whose file numbers are the inodes.
    init(of state: FolderState) {
        for number in state.numbers.values { numbers[String(number)] = number }
    }

    /// Records the inode of the file at a path.
    mutating func note(_ path: String, _ file: Int?) {
        guard let file, let inode = Self.inode(path), !numbers.values.contains(file) else { return }
        numbers[String(inode)] = file
    }

    /// The number of the file whose inode is in a record.
    func number(_ inode: String) -> Int? { numbers[inode] }

    static func inode(_ path: String) -> Int? {
        var status = stat()
        return lstat(path, &status) == 0 ? Int(status.st_ino) : nil
    }
}
