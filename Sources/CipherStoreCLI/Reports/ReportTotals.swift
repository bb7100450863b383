/// The totals of merged reports, as `cipherstore report --json` prints them.
struct ReportTotals: Encodable, Sendable {
    /// One of the slowest files.
    struct Slow: Encodable, Sendable {
        let path: String
        let seconds: Double
        let bytesBefore: Int64
        let shard: Int
    }

    /// A file that failed.
    struct Failed: Encodable, Sendable {
        let path: String
        let code: String
        let message: String
        let advice: String
        let bytes: Int64
        let seconds: Double
        let shard: Int
    }

    /// The progress of a shard.
    struct Progress: Encodable, Sendable {
        let shard: Int
        let shards: Int
        fileprivate(set) var done = 0
        fileprivate(set) var failed = 0
        fileprivate(set) var seconds = 0.0
        /// The state of the shard: `ended`, `unfinished` or `missing`.
        let state: String
    }

    let goal: String
    let folder: String
    private(set) var databases = 0
    private(set) var done = 0
    private(set) var unchanged = 0
    private(set) var failed = 0
    private(set) var skipped = 0
    private(set) var plaintext = 0
    private(set) var warnings = 0
    private(set) var bytesBefore: Int64 = 0
    private(set) var bytesAfter: Int64 = 0
    /// The total time of all files.
    private(set) var seconds = 0.0
    /// The time from the start of the first run to the end of the last file.
    let wallSeconds: Double
    /// The number of files that failed, by the code of the failure.
    private(set) var failuresByCode: [String: Int] = [:]
    private(set) var failures: [Failed] = []
    private(set) var slowest: [Slow] = []
    private(set) var progress: [Progress] = []
    let shards: Int
    let missingShards: [Int]
    let unfinishedShards: [Int]
    let givenTwice: [MergedReport.GivenTwice]
    let givenTwiceCount: Int
    let unreadableLines: Int
    /// The databases of the folder that no report lists, and the reported files that do not exist; `nil` if the folder
    /// was not searched.
    var missing: [String]?
    var vanished: [String]?
    /// The number of files in each class of durations: one class for each of ``Histogram/limits``, and a last one for
    /// longer durations.
    private(set) var durations: [Int]

    /// The number of slowest files to report.
    private static let mostSlow = 20

    init(_ merged: MergedReport) {
        goal = merged.header?.goal ?? "done"
        folder = merged.header?.folder ?? ""
        wallSeconds = max(0, merged.finished - merged.started)
        shards = merged.runs.count
        missingShards = merged.runs.missing(of: shards)
        unfinishedShards = merged.runs.unfinished(of: shards)
        (givenTwice, givenTwiceCount) = (merged.givenTwice, merged.givenTwiceCount)
        unreadableLines = merged.unreadable
        durations = [Int](repeating: 0, count: Histogram.limits.count + 1)
        var progress: [ShardRuns.Key: Progress] = [:]
        let keys = merged.runs.keys + missingShards.map { ShardRuns.Key(index: $0, count: shards) }
        for key in keys {
            let state = merged.runs.hasEnded(key).map { $0 ? "ended" : "unfinished" } ?? "missing"
            progress[key] = Progress(shard: key.index, shards: key.count, state: state)
        }
        for (digest, file) in merged.files {
            add(file, merged.failures[digest])
            progress[file.shard]?.add(file)
        }
        self.progress = progress.values.sorted { ($0.shards, $0.shard) < ($1.shards, $1.shard) }
        failures.sort { ($0.code, $0.path) < ($1.code, $1.path) }
        slowest.sort { $0.seconds > $1.seconds }
        slowest = Array(slowest.prefix(Self.mostSlow))
    }

    private mutating func add(_ file: MergedReport.File, _ failure: ReportEntry.Failure?) {
        warnings += Int(file.warnings)
        if file.isPlaintext { plaintext += 1 }
        switch file.result {
        case .done: done += 1
        case .unchanged: unchanged += 1
        case .failed: failed += 1
        case .left: return
        case .skipped:
            skipped += 1
            return
        }
        databases += 1
        bytesBefore += file.bytesBefore
        bytesAfter += file.bytesAfter
        let time = Double(file.seconds)
        seconds += time
        durations[Histogram.limits.firstIndex { time <= $0 } ?? Histogram.limits.count] += 1
        if file.result == .failed {
            let code = failure?.code ?? "unknown"
            failuresByCode[code, default: 0] += 1
            failures.append(
                Failed(
                    path: file.name, code: code, message: failure?.message ?? "",
                    advice: failure?.advice ?? "", bytes: file.bytesBefore, seconds: time,
                    shard: file.shard.index))
        }
        slowest.append(
            Slow(path: file.name, seconds: time, bytesBefore: file.bytesBefore, shard: file.shard.index))
        guard slowest.count >= 2_000 else { return }
        slowest.sort { $0.seconds > $1.seconds }
        slowest.removeLast(slowest.count - Self.mostSlow)
    }

    /// Whether every shard finished, and every file that the search found is reported.
    var isWhole: Bool { missingShards.isEmpty && unfinishedShards.isEmpty && missing?.isEmpty != false }

    /// The number of failures, as for a fleet; `tryAgain` if there are none, but a shard or a file is missing.
    var status: ExitStatus {
        if failed == 0, !isWhole { return .tryAgain }
        return ExitStatus(code: min(Int32(clamping: failed), FleetSummary.mostFailuresTold))
    }

    /// The classes of durations.
    enum Histogram {
        /// The upper limits of the classes, in seconds.
        static let limits = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]
    }
}

extension ReportTotals.Progress {
    fileprivate mutating func add(_ file: MergedReport.File) {
        switch file.result {
        case .done, .unchanged: done += 1
        case .failed: failed += 1
        case .skipped, .left: return
        }
        seconds += Double(file.seconds)
    }
}
