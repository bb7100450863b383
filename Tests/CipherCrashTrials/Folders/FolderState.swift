import CipherPlatform
import Foundation

/// The files of a folder by name.
struct FolderState: Hashable, Sendable {
    /// The name of the database in every folder.
    static let database = "app.db"

    var files: [String: FileImage]
    /// The file that each name refers to.
    ///
    /// Two names may be links to one file, and an upgrade's record identifies files by their inodes.
    var numbers: [String: Int]

    init(files: [String: FileImage], numbers: [String: Int]) {
        self.files = files
        self.numbers = numbers
    }

    /// The files that are in a folder now, each with its inode as its number.
    init(of folder: String) throws {
        var files: [String: FileImage] = [:]
        var numbers: [String: Int] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            let path = folder + "/" + name
            var status = stat()
            guard lstat(path, &status) == 0 else { throw TrialError(detail: "\(path) has no status") }
            let isFile = status.st_mode & S_IFMT == S_IFREG
            files[name] = FileImage(
                bytes: isFile ? try FileBytes.read(path) : Array("no regular file".utf8),
                mode: Int(status.st_mode & 0o7777))
            numbers[name] = Int(status.st_ino)
        }
        self.init(files: files, numbers: numbers)
    }

    /// Creates the folder again with these files.
    ///
    /// - Parameters:
    ///   - inodes: The inodes in the upgrade's record, if one is among the files; they are replaced by the new ones.
    ///   - isAfterRestart: Whether the system was restarted after the record was written.
    func lay(at folder: String, _ inodes: Inodes, isAfterRestart: Bool = false) throws {
        try? FileManager.default.removeItem(atPath: folder)
        guard mkdir(folder, 0o755) == 0 else { throw TrialError(detail: "\(folder) cannot be created: \(errno)") }
        var laid: [Int: String] = [:]
        for (name, image) in files.sorted(by: { $0.key < $1.key }) {
            let path = folder + "/" + name
            guard let number = numbers[name] else { throw TrialError(detail: "\(name) is not a file") }
            if let first = laid[number] {
                guard link(first, path) == 0 else { throw TrialError(detail: "\(path) cannot be linked: \(errno)") }
            } else {
                laid[number] = path
                try FileBytes.write(image.bytes, to: path)
            }
        }
        if let record = files[UpgradeRecord.name] {
            let corrected = UpgradeRecord.replacing(record.bytes) { word in
                guard let number = inodes.number(word) else { return nil }
                // No file has inode 1.
                return String(laid[number].flatMap(Inodes.inode) ?? 1)
            }
            try FileBytes.write(
                isAfterRestart ? UpgradeRecord.afterRestart(corrected) : corrected,
                to: folder + "/" + UpgradeRecord.name)
            if let modified = UpgradeRecord.modified(record.bytes) {
                let times = [modified, modified]
                guard utimensat(AT_FDCWD, folder + "/" + Self.database, times, 0) == 0 else {
                    throw TrialError(detail: "the times of \(Self.database) cannot be set: \(errno)")
                }
            }
        }
        for (name, image) in files {
            guard chmod(folder + "/" + name, mode_t(image.mode)) == 0 else {
                throw TrialError(detail: "the mode of \(name) cannot be set: \(errno)")
            }
        }
    }

    /// A digest of everything that the next run may distinguish.
    ///
    /// It leaves out the index of a log, which is created again, and the inode numbers.
    var digest: Int {
        var hasher = Hasher()
        let names = Dictionary(numbers.map { (String($1), $0) }, uniquingKeysWith: min)
        for (name, image) in files.sorted(by: { $0.key < $1.key }) where !name.hasSuffix("-shm") {
            hasher.combine(name)
            hasher.combine(image.mode)
            let bytes = name == UpgradeRecord.name ? UpgradeRecord.replacing(image.bytes) { names[$0] } : image.bytes
            hasher.combine(bytes.count)
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
        return hasher.finalize()
    }
}
