internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// A report to which a run adds its lines.
///
/// Each line is one write at the end of the file, so that it is either complete or missing if the process is killed.
/// The class is used by the main thread only.
final class ReportFile: @unchecked Sendable {
    private let path: String
    private let descriptor: Int32

    /// Opens or creates a report, and writes the header of a run.
    ///
    /// - Throws: ``CommandFailure`` if the file is not a report, if it is a report on other work or with another shard
    ///   count, or if another run is writing to it; ``StoreError`` if it cannot be written.
    init(_ path: String, _ header: ReportHeader) throws {
        self.path = path
        descriptor = path.withSystemPath { open($0, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0o666) }
        guard descriptor >= 0 else { throw FileSystem.failure("be written", path) }
        try FileSystem.checkRegular(FileSystem.status(ofDescriptor: descriptor, path), path)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else { throw FileSystem.failure("be locked", path) }
            throw CommandFailure(
                .tryAgain, "busy", path: path, "another run is writing to this report",
                advice: "wait until the other run ends, or use another file for --report")
        }
        _ = try ReportReader.read(path) { line in
            if case .header(let before) = line { try header.check(continues: before, in: path) }
        }
        if try !endsWithLine() { try write([UInt8(ascii: "\n")]) }
        try append(.header(header))
    }

    deinit { close(descriptor) }

    /// Adds a line.
    ///
    /// - Throws: ``StoreError`` if the line cannot be written.
    func append(_ content: ReportLine.Content) throws {
        try write(Array((Output.jsonText(ReportLine(content: content)) + "\n").utf8))
    }

    /// Syncs the added lines to the disk.
    func sync() throws {
        guard syncToDisk(descriptor) else { throw FileSystem.failure("be synced", path) }
    }

    private func write(_ line: [UInt8]) throws {
        let reason = FileDescriptorStream.writeAll(line, to: descriptor)
        guard reason == 0 else { throw FileSystem.failure("be written", path, reason) }
    }

    /// Returns whether the file ends with a complete line.
    private func endsWithLine() throws -> Bool {
        let size = try FileSystem.status(ofDescriptor: descriptor, path).size
        guard size > 0 else { return true }
        var last: UInt8 = 0
        guard pread(descriptor, &last, 1, off_t(size - 1)) == 1 else { throw FileSystem.failure("be read", path) }
        return last == UInt8(ascii: "\n")
    }
}

extension ReportHeader {
    /// Checks that a run with this header continues the work of another run.
    ///
    /// - Throws: ``CommandFailure`` with the code `usage` if it does not.
    func check(continues other: ReportHeader, in path: String) throws {
        try check(isOf: other, in: path)
        guard shards == other.shards else {
            throw CommandFailure.usage(
                "\(path) is a report from a run with \(other.shards) shard\(other.shards == 1 ? "" : "s"), but this run "
                    + "has \(shards)",
                advice: "use another file for --report, and pass this one with --resume")
        }
    }

    /// Checks that another run did the same work that this run is to do.
    ///
    /// - Throws: ``CommandFailure`` with the code `usage` if it did not.
    func check(isOf other: ReportHeader, in path: String) throws {
        let difference: String? =
            if goal != other.goal {
                "whose goal was \"\(other.goal)\", not \"\(goal)\""
            } else if !folder.isSameName(as: other.folder) {
                "on the folder \(other.folder), not \(folder)"
            } else {
                Set(options.keys).union(other.options.keys).sorted().first { options[$0] != other.options[$0] }
                    .map { "with a different --\($0)" }
            }
        if let difference {
            throw CommandFailure.usage(
                "\(path) is a report from a run \(difference)",
                advice: "pass only reports from runs with the same command, folder and options")
        }
    }
}
