internal import CipherDatabaseConversion
internal import CipherSystemFiles

/// A command on all databases below a folder.
///
/// Several files are worked on at a time; each by itself is done as the same command does a single one, with the same
/// locks and the same proof. What parallelism buys is the derivation of keys, of which a passphrase needs three for each
/// file that is converted and one for each that is found done: for small files that is nearly all of the time.
struct Fleet {
    /// Does the work on one file.
    typealias Work = @Sendable (DatabasePaths, ConversionOptions) throws -> FleetResult

    private let invocation: Invocation
    /// What people read of the files that were done, such as `encrypted`.
    private let verb: String
    private let options: ConversionOptions
    private let jobs: Int
    private let progress: ProgressBar.Mode
    private let files: [DatabaseSearch.Found]
    private let apart: [FleetResult]
    private let beside: [DatabaseSearch.Found]
    private let cancellation = UpgradeCancellation()

    /// Finds the databases.
    ///
    /// - Throws: ``StoreError`` where there is no such folder, or where the key that all files share cannot be had.
    init(_ invocation: Invocation, in folder: String, _ names: DatabaseSearch.Names, verb: String) throws {
        self.invocation = invocation
        self.verb = verb
        options = try UpgradeOptions.waiting(invocation)
        jobs = try FleetOptions.jobs(invocation)
        progress = try invocation.choice(.progress, default: .auto)
        for key in [KeyOptions.key, .newKey] { try key.checkShared(invocation, in: folder) }
        let found = try DatabaseSearch.run(in: folder, FleetOptions.names(invocation, default: names))
        files = found.filter { if case .database = $0.kind { true } else { false } }
        apart = found.compactMap { Self.result(withoutWorkOn: $0) }
        beside = found.filter { if case .beside = $0.kind { true } else { false } }
    }

    /// What was left alone for its name, unless it was an upgrade's and was swept when its database had its turn.
    private static func notTouched(_ found: DatabaseSearch.Found) -> FleetResult {
        guard case .beside(let database) = found.kind else { return FleetResult(.left, "left", path: found.path) }
        let failure = CommandFailure(
            .badData, "besideDatabase", path: found.path,
            "this is a database, and its name is that of a backup or another file of \(database): it was left alone",
            advice: "give it another name, or delete it where it is a backup that is no longer needed")
        return FleetResult(.failed, "failed", path: found.path, failure: FailureReport(failure))
    }

    /// What is not entered is told of all the same.
    private static func result(withoutWorkOn found: DatabaseSearch.Found) -> FleetResult? {
        switch found.kind {
        case .database, .beside: nil
        case .symbolicLink: FleetResult(.skipped, "skipped", path: found.path, reason: "a symbolic link")
        case .otherName(let first):
            FleetResult(.skipped, "skipped", path: found.path, reason: "another name (hard link) of \(first)")
        case .failure(let error): FleetResult(error, path: found.path)
        }
    }

    /// Works through the files, and tells of each as soon as it has had its turn.
    func run(_ work: @escaping Work) throws -> ExitStatus {
        let began = ContinuousClock.now
        let bar = FleetBar(progress, files)
        try SignalWatch.cancel(cancellation)
        let workers = try FleetWorkers(files, jobs: jobs, cancellation: cancellation) { [cancellation, options] file in
            var options = options
            options.cancellation = cancellation
            if let bar { options.progress = { bar.update(file, $0.fraction) } }
            let result: FleetResult
            do {
                result = try work(DatabasePaths(file), options)
            } catch {
                result = FleetResult(error, path: file.path)
            }
            bar?.finish(file, failed: result.kind == .failed)
            return result
        }
        var account = Account(summary: FleetSummary(), bar: bar)
        for result in apart { tell(result, &account) }
        while let result = workers.nextResult() { tell(result, &account) }
        for file in beside where (try? file.isStillThere()) != false { tell(Self.notTouched(file), &account) }
        for file in workers.notBegun { tell(FleetResult(.left, "left", path: file.path), &account) }
        bar?.erase()
        account.summary.seconds = (ContinuousClock.now - began).inSeconds
        guard let failure = account.outputFailure else { return try end(account.summary) }
        let report = FailureReport(failure)
        Output.complain(report.line)
        return account.summary.left > 0 ? report.status : account.summary.status
    }

    /// What has become of the files so far.
    private struct Account {
        var summary: FleetSummary
        let bar: FleetBar?
        /// Why standard output cannot be written.
        var outputFailure: (any Error)?
    }

    private func tell(_ result: FleetResult, _ account: inout Account) {
        account.summary.add(result)
        if result.failure != nil || !result.warnings.isEmpty { account.bar?.erase() }
        if let failure = result.failure { Output.complain(failure.line) }
        for warning in result.warnings { Output.complain("warning: \(result.path): \(warning)") }
        guard invocation.has(.json), account.outputFailure == nil else { return }
        do {
            try Output.json(result)
            // A line that was read is a file that was done, whatever becomes of this process.
            try Output.flush()
        } catch {
            // The reader is gone: the files in hand are given back, and no other is begun.
            account.outputFailure = error
            cancellation.cancel()
        }
    }

    private func end(_ summary: FleetSummary) throws -> ExitStatus {
        if invocation.has(.json) { try Output.json(["summary": summary]) } else { try summary.print(verb) }
        if summary.failed > 0 {
            Output.complain("\(summary.failed) of \(summary.databases) databases failed")
        }
        guard let signal = SignalWatch.received else { return summary.status }
        Output.complain("ended by a signal: \(summary.left) of \(summary.databases) databases are left as they were")
        return .signal(signal)
    }
}
