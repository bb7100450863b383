internal import CipherErrors
internal import CipherSystemFiles

/// The files that are done by the reports of earlier runs.
///
/// Holds some 40 bytes a file of the shard.
struct ResumedFiles: Sendable {
    /// The size and the time of the last write that each file had when it was done, as one number.
    private var states: [PathDigest: Int] = [:]
    /// How many lines of the reports were cut.
    private(set) var unreadable = 0

    /// Nothing is done yet.
    init() {}

    /// Reads reports.
    ///
    /// - Parameter report: The report of this run, which need not be there yet.
    /// - Throws: ``CommandFailure`` where one is no report, or not one of the same work; ``StoreError`` where one cannot be
    ///   read.
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

    /// Whether a file was done, and is as it was then.
    ///
    /// - Parameters:
    ///   - path: Its path relative to the folder.
    ///   - status: What it is now.
    func contains(_ path: String, _ status: FileState) -> Bool {
        guard !states.isEmpty, let state = states[PathDigest(path)] else { return false }
        return state == status.number
    }

    /// What tells whether a file was written.
    struct FileState: Sendable, Hashable {
        let size: Int64
        /// As seconds and nine decimals since 1970.
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
    /// The state in which the file was done; `nil` where it was not.
    fileprivate var state: Int? {
        guard result == .done || result == .unchanged, let bytesAfter, let modified else { return nil }
        return ResumedFiles.FileState(size: bytesAfter, modified: modified).number
    }
}
