internal import CipherErrors
internal import CipherSystemFiles

/// The files that the reports of earlier runs list as done.
///
/// They take some 40 bytes of memory per file of the shard.
struct ResumedFiles: Sendable {
    /// A hash of the size and the last write time of each file when it was done.
    private var states: [PathDigest: Int] = [:]
    /// The number of incomplete lines in the reports.
    private(set) var unreadable = 0

    /// Creates an empty set: no file is done yet.
    init() {}

    /// Reads reports.
    ///
    /// - Parameter report: The report of this run, which need not exist yet.
    /// - Throws: ``CommandFailure`` if a file is not a report, or covers different work; ``StoreError`` if a file
    ///   cannot be read.
    init(_ paths: [String], report: String?, of header: ReportHeader, _ shard: Shard) throws {
        for path in paths {
            if let report, path.isSameName(as: report), try !FileSystem.exists(path) { continue }
            unreadable += try ReportReader.read(path) { line in
                switch line {
                case .header(let other): try header.check(isOf: other, in: path)
                case .summary: break
                case .file(let entry):
                    guard shard.owns(entry.name) else { return }
                    states[PathDigest(entry.name)] = entry.state
                }
            }
        }
    }

    /// Returns whether a file was done and has not changed since.
    ///
    /// - Parameters:
    ///   - path: The path of the file, relative to the folder.
    ///   - status: The current state of the file.
    func contains(_ path: String, _ status: FileState) -> Bool {
        guard !states.isEmpty, let state = states[PathDigest(path)] else { return false }
        return state == status.number
    }

    /// The properties that show whether a file was written.
    struct FileState: Sendable, Hashable {
        let size: Int64
        /// The time of the last write, in seconds since 1970, with nine decimals.
        let modified: String

        init(size: Int64, modified: String) {
            (self.size, self.modified) = (size, modified)
        }

        init(size: Int64, modified: [Int]) {
            let decimals = String(modified[1])
            self.init(
                size: size, modified: "\(modified[0])." + String(repeating: "0", count: 9 - decimals.count) + decimals)
        }

        fileprivate var number: Int { hashValue }
    }
}

extension ReportEntry {
    /// The state of the file when it was done; `nil` if it was not done.
    fileprivate var state: Int? {
        guard result == .done || result == .unchanged, let bytesAfter, let modified else { return nil }
        return ResumedFiles.FileState(size: bytesAfter, modified: modified).number
    }
}
