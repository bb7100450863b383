import Foundation
import TestSupport

/// The inodes of the original and of its copy in the recorded run.
///
/// A disk keeps the inodes of its files; the folders in which its states are laid out have others, and an upgrade's record
/// is corrected to those.
struct Inodes {
    private var recorded: [(file: Int, inode: UInt64)] = []

    /// Takes note of the file that is at a path.
    mutating func note(_ path: String, _ file: Int?) {
        guard let file, let inode = Self.inode(path), !recorded.contains(where: { $0.file == file }) else { return }
        recorded.append((file, inode))
    }

    /// Puts the inodes of a state's files into its record, where it has one that was written.
    func correct(_ record: String, _ state: DiskState, in folder: TemporaryFolder) throws {
        guard let text = try? String(contentsOfFile: record, encoding: .utf8) else { return }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.count > 1 else { return }
        let length = lines[1].utf8.count
        let words = lines[1].split(separator: " ").map { word in
            guard let known = recorded.first(where: { String($0.inode) == word }) else { return String(word) }
            let name = state.numbers.first { $0.value == known.file && state.files[$0.key] != nil }?.key
            // No file has inode 1.
            return String(name.flatMap { Self.inode(folder.path($0)) } ?? 1)
        }
        let line = words.joined(separator: " ")
        lines[1] = line + String(repeating: " ", count: max(0, length - line.utf8.count))
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(filePath: record))
    }

    private static func inode(_ path: String) -> UInt64? {
        (try? FileManager.default.attributesOfItem(atPath: path))?[.systemFileNumber] as? UInt64
    }
}
