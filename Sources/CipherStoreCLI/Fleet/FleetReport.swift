internal import CipherErrors
internal import CipherPlatform

/// The report to which a run adds its results.
struct FleetReport {
    private let file: ReportFile
    private let files: FleetFiles
    private let shard: Int

    init(_ path: String, _ header: ReportHeader, _ files: FleetFiles) throws {
        file = try ReportFile(path, header)
        self.files = files
        shard = header.shard
    }

    /// Adds a line for a file that was started; for any other file, the next run adds the line.
    func add(_ result: FleetResult) throws {
        guard result.kind != .left else { return }
        let path = files.relative(result.path)
        try file.append(
            .file(
                ReportEntry(
                    path: path, pathBase64: ReportEntry.base64(of: path), result: result.kind, outcome: result.outcome,
                    bytesBefore: result.turn?.bytesBefore, bytesAfter: result.turn?.after?.size,
                    modified: result.turn?.after?.modified, seconds: result.turn?.seconds ?? 0,
                    error: result.failure.map {
                        ReportEntry.Failure(
                            code: $0.code, message: $0.message, advice: $0.advice, stage: $0.stage?.rawValue)
                    },
                    reason: result.reason, warnings: result.warnings.isEmpty ? nil : result.warnings,
                    plaintext: result.isPlaintext ? true : nil, shard: shard, finished: Date().timeIntervalSince1970)))
    }

    /// Adds a line that records how the run ended.
    func end(_ summary: FleetSummary) throws {
        try file.append(.summary(summary, shard: shard))
        try file.sync()
    }
}

extension ReportHeader {
    /// Creates the header that describes what a run is to do.
    init(_ invocation: Invocation, goal: String, folder: String, _ shard: Shard) {
        var name = [CChar](repeating: 0, count: 256)
        gethostname(&name, name.count - 1)
        self.init(
            goal: goal, folder: folder, options: invocation.given(except: FleetOptions.withoutEffectOnFiles),
            shard: shard.index, shards: shard.count, shardFrom: shard.origin, host: SystemPath.text(cString: name),
            process: getpid(), started: Date().timeIntervalSince1970, version: ToolVersion.number)
    }
}
