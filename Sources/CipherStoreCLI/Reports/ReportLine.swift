internal import CipherErrors
internal import CipherPlatform

/// The header of a run in a report: what is done to which files, and by which process.
struct ReportHeader: Codable, Sendable, Equatable {
    /// What the run does to a file, such as `encrypted`.
    let goal: String
    /// The folder that paths are relative to.
    let folder: String
    /// The options that affect what is done to a file, with their values; for a key, its location, never the key
    /// itself.
    let options: [String: String]
    let shard: Int
    let shards: Int
    /// The option or variables that specified the shard; `nil` if the run covers all files.
    let shardFrom: String?
    let host: String
    let process: Int32
    /// The start of the run, in seconds since 1970.
    let started: Double
    let version: String
}

/// The result for one file, as a line of a report.
struct ReportEntry: Codable, Sendable {
    /// The path relative to the folder, with bytes that are not UTF-8 as `\xff`.
    let path: String
    /// The bytes of a path that is not UTF-8.
    let pathBase64: String?
    /// The result by which the summary counts the file.
    let result: FileResult
    /// The outcome that the command reports for a single file.
    let outcome: String
    /// The size of the file before and after, in bytes.
    let bytesBefore: Int64?
    let bytesAfter: Int64?
    /// The time of the last write to the file, in seconds since 1970, with nine decimals.
    let modified: String?
    /// The wall time that the file took, in seconds.
    let seconds: Double
    let error: Failure?
    /// The reason why the file was skipped.
    let reason: String?
    let warnings: [String]?
    /// Whether the file is plaintext although an encrypted one was expected.
    let plaintext: Bool?
    let shard: Int
    /// The end of the work on the file, in seconds since 1970.
    let finished: Double

    struct Failure: Codable, Sendable {
        let code: String
        let message: String
        let advice: String
        let stage: String?
    }

    /// The path as lossless text, which identifies the file.
    var name: String {
        guard let pathBase64, let bytes = Data(base64Encoded: pathBase64) else { return path }
        return SystemPath.text(bytes)
    }

    static func base64(of path: String) -> String? {
        let bytes = SystemPath.bytes(path)
        return path.utf8.elementsEqual(bytes) ? nil : Data(bytes).base64EncodedString()
    }
}

/// A line of a report, which is one of three kinds.
struct ReportLine: Sendable {
    enum Content: Sendable {
        case header(ReportHeader)
        case file(ReportEntry)
        /// The summary at the end of the run of a shard.
        case summary(FleetSummary, shard: Int)
    }

    let content: Content
}

extension ReportLine: Codable {
    private enum CodingKeys: String, CodingKey { case fleet, summary, shard }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let header = try container.decodeIfPresent(ReportHeader.self, forKey: .fleet) {
            content = .header(header)
        } else if let summary = try container.decodeIfPresent(FleetSummary.self, forKey: .summary) {
            content = .summary(summary, shard: try container.decode(Int.self, forKey: .shard))
        } else {
            content = .file(try ReportEntry(from: decoder))
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch content {
        case .file(let entry): try entry.encode(to: encoder)
        case .header(let header):
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(header, forKey: .fleet)
        case .summary(let summary, let shard):
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(shard, forKey: .shard)
            try container.encode(summary, forKey: .summary)
        }
    }
}
