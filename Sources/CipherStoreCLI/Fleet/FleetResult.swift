internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSchemaMigration
internal import CipherStore

/// The result for one file of a fleet.
struct FleetResult: Codable, Sendable {
    let path: String
    let kind: FileResult
    /// The outcome that the same command reports for a single file, or `failed`, `damaged`, `skipped`, `left`.
    let outcome: String
    /// The reason why the file was skipped.
    let reason: String?
    let failure: FailureReport?
    let warnings: [String]
    /// The line of the output with `--json`; `nil` if it could not be made.
    let line: String?
    /// Whether the file is plaintext although an encrypted one was expected.
    var isPlaintext = false
    /// Further facts for the report file.
    var turn: Turn?

    /// The file before and after it was processed.
    struct Turn: Sendable {
        let bytesBefore: Int64
        /// The state afterwards; `nil` if the file no longer exists.
        let after: ResumedFiles.FileState?
        let seconds: Double
    }

    /// - Parameter report: The report that the same command prints for a single file with `--json`.
    init(
        _ kind: FileResult, _ outcome: String, path: String, reason: String? = nil, failure: FailureReport? = nil,
        report: (any Encodable & Sendable)? = nil, warnings: [String] = []
    ) {
        self.path = path
        self.kind = kind
        self.outcome = outcome
        self.reason = reason
        self.failure = failure
        self.warnings = warnings
        line = try? Output.jsonText(Line(path: path, outcome: outcome, reason: reason, error: failure, report: report))
    }

    init(_ error: any Error, path: String) {
        let isCancelled = (error as? StoreError)?.code == .cancelled
        self.init(
            isCancelled ? .left : .failed, isCancelled ? "left" : "failed", path: path,
            failure: isCancelled ? nil : FailureReport(error))
    }

    // ``turn`` is what the run observes, so a worker does not tell it.
    private enum CodingKeys: String, CodingKey {
        case path, kind, outcome, reason, failure, warnings, line, isPlaintext
    }
}

/// The line of the output with `--json`.
private struct Line: Encodable {
    let path: String
    let outcome: String
    let reason: String?
    let error: FailureReport?
    let report: (any Encodable)?

    private enum CodingKeys: String, CodingKey { case path, outcome, reason, error, report }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(path, forKey: .path)
        try container.encode(outcome, forKey: .outcome)
        try container.encodeIfPresent(reason, forKey: .reason)
        try container.encodeIfPresent(error, forKey: .error)
        if let report { try container.encode(report, forKey: .report) }
    }
}

extension FleetResult {
    /// Creates the result of an encryption, a key change or a similar conversion.
    init(_ report: EncryptionReport, path: String) {
        let kind: FileResult =
            switch report.outcome {
            case .encrypted, .created, .decrypted, .rekeyed, .shadow, .backedUp, .restored, .vacuumed,
                .recovered:
                .done
            case .alreadyEncrypted, .alreadyPlaintext, .alreadyRekeyed: .unchanged
            }
        self.init(kind, report.outcome.rawValue, path: path, report: report, warnings: report.warnings)
    }

    /// Creates the result of a verification.
    ///
    /// - Parameter hasKey: Whether a key was specified, so that plaintext files are reported.
    init(_ found: Verification, path: String, hasKey: Bool) {
        let isPlaintext = hasKey && found.state == .plaintext
        self.init(
            found.isSound ? .done : .failed, found.isSound ? "sound" : "damaged", path: path,
            failure: found.isSound ? nil : FailureReport(found.failure), report: found,
            warnings: found.warnings + (isPlaintext ? ["this file is not encrypted"] : []))
        self.isPlaintext = isPlaintext
    }

    /// Creates the result of the whole flow of an app's launch.
    init(_ report: OpenReport, path: String) {
        let isUnchanged = report.outcome == .opened && report.migration.event == nil
        self.init(
            isUnchanged ? .unchanged : .done, report.outcome.rawValue, path: path, report: report,
            warnings: report.warnings)
    }
}
