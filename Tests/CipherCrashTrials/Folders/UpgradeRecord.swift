import Foundation

/// The record that an upgrade keeps beside the database, which identifies files by their inodes.
enum UpgradeRecord {
    static let name = FolderState.database + "-attempt"

    /// Replaces words in the record's second line, which contains the inodes.
    ///
    /// The line keeps its length.
    static func replacing(_ record: [UInt8], _ replacement: (String) -> String?) -> [UInt8] {
        var lines = String(decoding: record, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init)
        guard lines.count > 1 else { return record }
        let length = lines[1].utf8.count
        let words = lines[1].split(separator: " ").map(String.init).map { replacement($0) ?? $0 }
        let line = words.joined(separator: " ")
        lines[1] = line + String(repeating: " ", count: max(0, length - line.utf8.count))
        return Array(lines.joined(separator: "\n").utf8)
    }

    /// Returns when the damaged database was last modified, as stated in the record of a recovery.
    static func modified(_ record: [UInt8]) -> timespec? {
        let lines = String(decoding: record, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard let numbers = lines.dropFirst(3).first?.split(separator: " ").dropFirst(2).first?.split(separator: "."),
            numbers.count == 2, let seconds = Int(numbers[0]), let nanoseconds = Int(numbers[1])
        else { return nil }
        return timespec(tv_sec: seconds, tv_nsec: nanoseconds)
    }

    /// The record as it is found after a restart of the system, when the boot ID in it is no longer the current one.
    static func afterRestart(_ record: [UInt8]) -> [UInt8] {
        guard let start = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8) else {
            return record
        }
        let word = start.trimmingCharacters(in: .whitespacesAndNewlines)
        return Array(
            String(decoding: record, as: UTF8.self).replacingOccurrences(
                of: word, with: String(word.reversed())
            ).utf8)
    }
}
