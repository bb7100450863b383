internal import CCipherSystem
internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// A process that works on the files of a run, one after another, as the run tells it over a socket.
///
/// It is this program with the same command line after one more word, so that it reads the same options, keys and
/// configuration as the run; but instead of searching for files, it receives them. Its standard output is the socket,
/// and its standard input has the key if the run read one there. Signals that end a run are blocked, because the run
/// blocks them before it starts a worker: a terminal and systemd send them to all processes, and only the run decides
/// what follows. The process ends as soon as the run closes the socket or ends in any other way.
final class FleetWorker: Sendable {
    private let options: ConversionOptions
    private let limits: FileLimits
    /// Whether the run may have only so many files open, so that no other process can work on the rest.
    private let isLimited: Bool
    private let channel = FleetChannel(1)
    private let inbox = Inbox()
    private let cancellation = UpgradeCancellation()

    init(_ invocation: Invocation) throws {
        cs_name_process("cipherstore")
        limits = try FileLimits(invocation)
        try limits.limitMemory()
        try FleetLimits.shareOpenFiles(invocation)
        isLimited = invocation.has(FleetOptions.maxOpen)
        var options = try UpgradeOptions.waiting(invocation)
        options.cancellation = cancellation
        self.options = options
    }

    /// Works on files until the run ends this process.
    func serve(_ work: Fleet.Work) throws -> Never {
        try DetachedThread.start("requests") { [self] in
            receiveAll()
            // Whatever is in progress is left as a kill would leave it: nobody would see its result.
            _exit(0)
        }
        while true {
            let (job, folder) = inbox.next()
            guard isLimited || hasRoom(for: job) else {
                if folder >= 0 { close(folder) }
                channel.send(FleetAnswer.full)
                continue
            }
            channel.send(FleetAnswer.result(result(of: job, folder, work)))
        }
    }

    private func hasRoom(for job: FleetJob) -> Bool {
        (try? KeptFiles.shared.checkRoom(job.paths.database)) != nil
    }

    private func receiveAll() {
        while true {
            do {
                switch try channel.next(FleetRequest.self) {
                case .process(let job): inbox.put(job, folder: channel.takeDescriptor())
                case .cancel: cancellation.cancel()
                case nil: guard channel.receive() else { return }
                }
            } catch {
                return
            }
        }
    }

    private func result(of job: FleetJob, _ folder: Int32, _ work: Fleet.Work) -> FleetResult {
        do {
            try limits.limitProcessorTime(bytes: job.bytes)
            var options = options
            if job.showsProgress { options.progress = ProgressSender(channel).send }
            guard folder >= 0 else { return try work(job.paths, options) }
            return try UpgradeLock.borrowing(folder, of: job.paths) { try work(job.paths, options) }
        } catch {
            let isMemory = limits.memory > 0 && error.isOutOfMemory
            return FleetResult(isMemory ? limits.memoryFailure(job.paths.database) : error, path: job.paths.database)
        }
    }

    /// The next file.
    // Unchecked, but thread-safe: `job` is used only under `lock`.
    private final class Inbox: @unchecked Sendable {
        private let lock = Lock()
        private var job: (FleetJob, folder: Int32)?

        func put(_ job: FleetJob, folder: Int32) {
            lock.withLock {
                self.job = (job, folder)
                lock.wakeAll()
            }
        }

        func next() -> (FleetJob, folder: Int32) {
            lock.withLock {
                while true {
                    if let job {
                        self.job = nil
                        return job
                    }
                    lock.wait()
                }
            }
        }
    }

    /// Sends the progress of a file a few times per second.
    // Unchecked, but thread-safe: `sent` is used only under `lock`.
    private final class ProgressSender: @unchecked Sendable {
        private let channel: FleetChannel
        private let lock = Lock()
        private var sent: ContinuousClock.Instant?

        init(_ channel: FleetChannel) { self.channel = channel }

        @Sendable func send(_ progress: UpgradeProgress) {
            let isDue = lock.withLock {
                if let sent, .now - sent < .milliseconds(100) { return false }
                sent = .now
                return true
            }
            if isDue { channel.send(FleetAnswer.progress(progress.fraction)) }
        }
    }
}

extension Error {
    /// Whether an operation failed because SQLite got no more memory.
    fileprivate var isOutOfMemory: Bool {
        (self as? DatabaseError ?? (self as? StoreError)?.underlying)?.isOutOfMemory == true
    }
}
