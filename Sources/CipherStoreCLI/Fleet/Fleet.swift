internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherPlatform
internal import CipherPrimitives
internal import CipherSystemFiles

/// Runs a command on all databases below a folder.
///
/// Several files are processed at a time, each as the same command processes a single file, with the same locks and the
/// same proof, in one of several child processes (``WorkerProcess``). Parallelism speeds up key derivation: a passphrase
/// needs three derivations for each file that is converted, and one for each file that is already done. For small files,
/// this is nearly all of the time.
struct Fleet {
    /// Processes one file, in a worker process.
    typealias Work = @Sendable (DatabasePaths, ConversionOptions) throws -> FleetResult

    private let invocation: Invocation
    /// The word to print for files that were done, such as `encrypted`.
    private let verb: String
    private let options: ConversionOptions
    private let limits: FileLimits
    /// The key that was read from standard input.
    private let typedKey: SecretBytes?
    /// Whether the command changes the files, under the lock of their folders.
    private let locksFolders: Bool
    private let jobs: Int
    private let shard: Shard
    private let files: FleetFiles
    private let bar: FleetBar?
    private let report: FleetReport?
    private let pace: FleetPace?
    /// Warnings that every file repeats, which are printed once.
    private let warnings: Set<String>
    private let cancellation = UpgradeCancellation()

    /// Runs a command on the databases in a folder or, in a worker process, on the files that the run sends.
    ///
    /// - Throws: ``StoreError`` if there is no such folder, or if the key that all files share is not available;
    ///   ``CommandFailure`` if options are invalid or a report covers different work.
    static func run(
        _ invocation: Invocation, in folder: String, _ names: DatabaseSearch.Names, verb: String,
        locksFolders: Bool = true, work: Work
    ) throws -> ExitStatus {
        if ThisProcess.isWorker { try FleetWorker(invocation).serve(work) }
        return try Fleet(invocation, in: folder, names, verb: verb, locksFolders: locksFolders).run()
    }

    /// Begins to search for the databases.
    private init(
        _ invocation: Invocation, in folder: String, _ names: DatabaseSearch.Names, verb: String, locksFolders: Bool
    ) throws {
        self.invocation = invocation
        self.verb = verb
        self.locksFolders = locksFolders
        options = try UpgradeOptions.waiting(invocation)
        limits = try FileLimits(invocation)
        let progress = try invocation.choice(.progress, default: ProgressBar.Mode.auto)
        let shard = try Shard.asked(invocation, ProcessInfo.processInfo.environment)
        let names = try FleetOptions.names(invocation, default: names)
        pace = try FleetOptions.bytesPerSecond(invocation).map { [cancellation] in
            FleetPace(bytesPerSecond: $0, cancellation: cancellation)
        }
        jobs = try FleetLimits.apply(invocation)
        let shared = try [KeyOptions.key, .newKey].map { try $0.checkShared(invocation, in: folder) }
        let newKey = try KeyOptions.newKey.provider(invocation)
        warnings = Set(newKey == nil ? shared[0] : shared[1])
        let isTyped = try newKey is TypedKeyProvider || KeyOptions.key.provider(invocation) is TypedKeyProvider
        typedKey = isTyped ? try TypedKeyProvider.shared.text() : nil
        self.shard = shard

        let header = try ReportHeader(invocation, goal: verb, folder: FleetFiles.root(of: folder), shard)
        let resumed = try ResumedFiles(
            invocation.all(FleetOptions.resume), report: invocation[FleetOptions.report], of: header, shard)
        if resumed.unreadable > 0 {
            Output.complain(
                "warning: the reports contain \(resumed.unreadable) incomplete "
                    + "line\(resumed.unreadable == 1 ? "" : "s"); files without a complete line are processed again")
        }
        if let list = invocation[FleetOptions.filesFrom] {
            files = try .list(list, in: folder, shard, resumed, cancellation)
            // A list from another program can be read only once.
            if files.isRepeatable {
                try Self.checkKeyFiles(invocation, .list(list, in: folder, shard, resumed, cancellation))
            }
            bar = FleetBar(progress) { nil }
        } else {
            try Self.checkKeyFiles(invocation, .search(in: folder, names, shard, resumed))
            files = try .search(in: folder, names, shard, resumed)
            bar = try FleetBar(progress) {
                let all = try FleetFiles.search(in: folder, names, shard, resumed)
                return Self.total(of: all)
            }
        }
        report = try invocation[FleetOptions.report].map { [files] in try FleetReport($0, header, files) }
        if let origin = shard.origin, origin != "--\(FleetOptions.shard.name)" {
            Output.complain("this run processes shard \(shard.index)/\(shard.count), as set by \(origin)")
        }
    }

    private static func checkKeyFiles(_ invocation: Invocation, _ files: FleetFiles) throws {
        let providers = try [KeyOptions.key, .newKey].compactMap { try $0.provider(invocation) as? any InputFiles }
        if !providers.isEmpty { try FleetKeys.check(providers, of: files) }
    }

    private static func total(of files: FleetFiles) -> FleetBar.Total {
        var total = FleetBar.Total(files: 0, weight: 0)
        while let file = files.next() {
            guard case .database = file.kind else { continue }
            total.files += 1
            total.weight += FleetBar.weight(file)
        }
        return total
    }

    /// Returns the result for a database that was not processed because of its name.
    ///
    /// The caller leaves out files of an upgrade that were swept when their database was processed.
    private static func notTouched(_ found: DatabaseSearch.Found) -> FleetResult {
        guard case .beside(let database) = found.kind else { return FleetResult(.left, "left", path: found.path) }
        let failure = CommandFailure(
            .badData, "besideDatabase", path: found.path,
            "this file is a database, but its name marks it as a backup or another file that belongs to "
                + "\(database), so it was not changed",
            advice: "rename the file, or delete it if it is a backup that you no longer need")
        return FleetResult(.failed, "failed", path: found.path, failure: FailureReport(failure))
    }

    /// Processes the files, and reports each as soon as it is finished.
    private func run() throws -> ExitStatus {
        let began = ContinuousClock.now
        for warning in warnings.sorted() { Output.complain("warning: \(warning)") }
        try SignalWatch.cancel(cancellation)
        let seats = (0..<jobs).map { _ in WorkerSeat(limits, key: typedKey) }
        let workers = try FleetWorkers(files, jobs: jobs, cancellation: cancellation) { [self] file, job in
            process(file, in: seats[job])
        }
        var account = Account(summary: FleetSummary(), bar: bar)
        while let result = workers.nextResult() { tell(result, &account) }
        for file in files.beside where (try? file.isStillThere()) != false { tell(Self.notTouched(file), &account) }
        // The rest of a list is not counted, because its length is not known.
        while cancellation.isCancelled, files.endsByItself, let file = files.next() {
            if case .database = file.kind { tell(FleetResult(.left, "left", path: file.path), &account) }
        }
        // Not earlier, because a process keeps the files locked that it replaced and that may be in use.
        for seat in seats { seat.end() }
        bar?.erase()
        account.summary.addResumed(files.resumedFiles)
        account.summary.signal = SignalWatch.received
        account.summary.seconds = (ContinuousClock.now - began).inSeconds
        do {
            try report?.end(account.summary)
        } catch {
            account.outputFailure = account.outputFailure ?? error
        }
        if let failure = files.failure { throw failure }
        guard let failure = account.outputFailure else { return try end(account.summary) }
        let report = FailureReport(failure)
        Output.complain(report.line)
        return account.summary.left > 0 ? report.status : account.summary.status
    }

    private func process(_ file: DatabaseSearch.Found, in seat: WorkerSeat) -> FleetResult {
        switch file.kind {
        // Links are not followed, but they are reported.
        case .symbolicLink: return FleetResult(.skipped, "skipped", path: file.path, reason: "a symbolic link")
        case .otherName(let first):
            return FleetResult(.skipped, "skipped", path: file.path, reason: "a hard link to \(first)")
        case .failure(let error): return FleetResult(error, path: file.path)
        case .beside: return Self.notTouched(file)
        case .database: break
        }
        pace?.wait(for: file.size)
        let result = Self.turn(of: file) {
            let paths = DatabasePaths(file)
            let log = try? FileSystem.size(paths.wal)
            let job = FleetJob(paths: paths, bytes: file.size + (log ?? 0), showsProgress: bar != nil)
            let work = { (folder: Int32) in
                try seat.process(job, folder: folder, cancellation: cancellation) { bar?.update(file, $0) }
            }
            guard locksFolders else { return try work(-1) }
            return try UpgradeLock.lending(paths, timeout: options.upgradeTimeout, cancellation: cancellation, work)
        }
        bar?.finish(file, failed: result.kind == .failed)
        return result
    }

    /// Processes a file, and records its state before and after.
    private static func turn(of file: DatabaseSearch.Found, _ work: () throws -> FleetResult) -> FleetResult {
        let began = ContinuousClock.now
        var result: FleetResult
        do {
            result = try work()
        } catch {
            result = FleetResult(error, path: file.path)
        }
        let after = try? FileSystem.status(file.path, followLinks: false)
        result.turn = FleetResult.Turn(
            bytesBefore: file.size,
            after: after.map { ResumedFiles.FileState(size: $0.size, modified: $0.modified) },
            seconds: ((ContinuousClock.now - began).inSeconds * 1e6).rounded() / 1e6)
        return result
    }

    /// The results so far.
    private struct Account {
        var summary: FleetSummary
        let bar: FleetBar?
        /// The error with which writing to standard output or the report failed.
        var outputFailure: (any Error)?
    }

    private func tell(_ result: FleetResult, _ account: inout Account) {
        account.summary.add(result.kind, warnings: result.warnings.count, isPlaintext: result.isPlaintext)
        if result.failure != nil || !result.warnings.isEmpty { account.bar?.erase() }
        if let failure = result.failure { Output.complain(failure.line) }
        for warning in result.warnings where !warnings.contains(warning) {
            Output.complain("warning: \(result.path): \(warning)")
        }
        do {
            try report?.add(result)
            guard invocation.has(.json), account.outputFailure == nil else { return }
            guard let line = result.line else {
                throw CommandFailure(
                    .internalFailure, "internal", path: result.path, "the result could not be written as JSON",
                    advice: "run the command without --json")
            }
            try Output.text(line + "\n")
            // A file whose line was read was processed, whatever happens to this process.
            try Output.flush()
        } catch {
            // The reader has exited: files in progress are restored, and no other file is started.
            account.outputFailure = account.outputFailure ?? error
            cancellation.cancel()
        }
    }

    private func end(_ summary: FleetSummary) throws -> ExitStatus {
        if invocation.has(.json) { try Output.json(["summary": summary]) } else { try summary.print(verb) }
        if summary.failed > 0 {
            Output.complain("\(summary.failed) of \(summary.databases) databases failed")
        }
        guard let signal = SignalWatch.received else { return summary.status }
        Output.complain("a signal ended the run; \(summary.left) of \(summary.databases) databases were left unchanged")
        return .signal(signal)
    }
}
