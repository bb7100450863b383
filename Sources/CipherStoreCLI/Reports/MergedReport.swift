/// The merged reports of a fleet's runs, with the latest result for each file.
///
/// It takes some 350 bytes of memory per file, including the file's name.
struct MergedReport: Sendable {
    /// The latest result for a file, and the shard that reported it.
    struct File: Sendable {
        /// The path relative to the folder.
        let name: String
        var result: FileResult
        var bytesBefore: Int64
        var bytesAfter: Int64
        var seconds: Float
        var finished: Double
        var warnings: Int32
        var isPlaintext: Bool
        var shard: ShardRuns.Key
    }

    /// A file that two shards processed although it belongs to one.
    struct GivenTwice: Sendable, Encodable {
        let path: String
        let shards: [Int]
    }

    /// The header of the first run; the other runs do the same work.
    private(set) var header: ReportHeader?
    private(set) var files: [PathDigest: File] = [:]
    /// The failures of the files whose latest result is a failure.
    ///
    /// Stored separately, because few files fail.
    private(set) var failures: [PathDigest: ReportEntry.Failure] = [:]
    private(set) var runs = ShardRuns()
    private(set) var givenTwice: [GivenTwice] = []
    private(set) var givenTwiceCount = 0
    /// The number of lines that are incomplete or otherwise not lines of a report.
    private(set) var unreadable = 0
    private(set) var started = Double.infinity
    private(set) var finished = 0.0

    /// The maximum number of files in ``givenTwice``.
    private static let mostGivenTwice = 1_000

    /// Reads reports.
    ///
    /// - Throws: ``CommandFailure`` if a file is not a report, or covers different work from the others; ``StoreError``
    ///   if a file cannot be read.
    init(_ paths: [String]) throws {
        for path in paths {
            var shard = ShardRuns.Key(index: 0, count: 1)
            unreadable += try ReportReader.read(path) { line in
                switch line {
                case .header(let header):
                    try (self.header ?? header).check(isOf: header, in: path)
                    self.header = self.header ?? header
                    shard = ShardRuns.Key(index: header.shard, count: header.shards)
                    runs.begin(shard, at: header.started)
                    started = min(started, header.started)
                case .summary(let summary, let index):
                    shard = ShardRuns.Key(index: index, count: shard.count)
                    runs.end(shard, summary)
                case .file(let entry):
                    shard = ShardRuns.Key(index: entry.shard, count: shard.count)
                    finished = max(finished, entry.finished)
                    add(entry, shard)
                }
            }
        }
    }

    private mutating func add(_ entry: ReportEntry, _ shard: ShardRuns.Key) {
        let new = File(
            name: entry.name, result: entry.result, bytesBefore: entry.bytesBefore ?? 0,
            bytesAfter: entry.bytesAfter ?? 0, seconds: Float(entry.seconds), finished: entry.finished,
            warnings: Int32(clamping: entry.warnings?.count ?? 0), isPlaintext: entry.plaintext == true, shard: shard)
        let digest = PathDigest(new.name)
        guard let old = files[digest] else {
            files[digest] = new
            failures[digest] = entry.error
            return
        }
        // With two different shard counts, a file belongs to one shard of each.
        if old.shard.count == shard.count, old.shard.index != shard.index {
            givenTwiceCount += 1
            if givenTwice.count < Self.mostGivenTwice {
                givenTwice.append(GivenTwice(path: new.name, shards: [old.shard.index, shard.index].sorted()))
            }
        }
        let isLater = old.finished <= new.finished
        let (earlier, later) = isLater ? (old, new) : (new, old)
        let failure = isLater ? entry.error : failures[digest]
        guard later.tells(failure, after: earlier) else {
            files[digest] = earlier
            files[digest]?.finished = later.finished
            failures[digest] = nil
            return
        }
        files[digest] = later
        failures[digest] = failure
    }
}

extension MergedReport.File {
    /// Returns whether this line, with its failure, replaces an earlier line as the file's result.
    ///
    /// A run that could not process a file because of another run does not know the other run's result, and a file that
    /// was done stays done.
    fileprivate func tells(_ failure: ReportEntry.Failure?, after earlier: MergedReport.File) -> Bool {
        guard earlier.result == .done || earlier.result == .unchanged else { return true }
        return failure?.code != "busy" && result != .skipped && (result != .unchanged || earlier.result != .done)
    }
}

/// The runs of each shard, and whether the last one finished.
struct ShardRuns: Sendable {
    struct Key: Hashable, Sendable {
        private let part: Int32
        private let parts: Int32

        init(index: Int, count: Int) {
            (part, parts) = (Int32(clamping: index), Int32(clamping: count))
        }

        var index: Int { Int(part) }
        var count: Int { Int(parts) }
    }

    private struct Run {
        var started: Double
        /// Whether the run finished all its files.
        var hasEnded: Bool
    }

    private var last: [Key: Run] = [:]

    mutating func begin(_ key: Key, at started: Double) {
        if let run = last[key], run.started > started { return }
        last[key] = Run(started: started, hasEnded: false)
    }

    mutating func end(_ key: Key, _ summary: FleetSummary) {
        last[key]?.hasEnded = summary.signal == nil && summary.left == 0
    }

    /// The shard count to evaluate: a count for which every shard has ended or, if there is no such count, that of the
    /// run that began last.
    var count: Int {
        let counts = Set(last.keys.map(\.count)).sorted()
        if let whole = counts.first(where: { count in missing(of: count).isEmpty && unfinished(of: count).isEmpty }) {
            return whole
        }
        return last.max { $0.value.started < $1.value.started }?.key.count ?? 1
    }

    /// Returns the shards without a report.
    func missing(of count: Int) -> [Int] {
        (0..<count).filter { last[Key(index: $0, count: count)] == nil }
    }

    /// Returns the shards whose last run was killed or ended by a signal.
    func unfinished(of count: Int) -> [Int] {
        (0..<count).filter { last[Key(index: $0, count: count)]?.hasEnded == false }
    }

    /// Returns whether the last run of a shard finished; `nil` if there was no run.
    func hasEnded(_ key: Key) -> Bool? { last[key]?.hasEnded }

    /// The shards that had a run, with any shard count.
    var keys: [Key] { last.keys.sorted { ($0.count, $0.index) < ($1.count, $1.index) } }
}
