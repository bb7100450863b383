internal import CipherDatabaseConversion
internal import CipherSystemFiles

/// Threads that process files; each takes the next one.
///
/// Both the number of jobs and the number of results that wait to be reported are bounded.
final class FleetWorkers: @unchecked Sendable {
    private static let mostWaiting = 64

    // Everything that changes is read and written only under `lock`.
    private let lock = Lock()
    private let files: FleetFiles
    private let work: @Sendable (DatabaseSearch.Found, Int) -> FleetResult
    private let cancellation: UpgradeCancellation
    private var running = 0
    private var results: [FleetResult] = []

    /// Starts one thread for each job, or as many as the system can start.
    ///
    /// - Parameter work: Processes a file, in the job with this number, counted from 0.
    /// - Throws: ``StoreError`` if the system cannot start any thread.
    init(
        _ files: FleetFiles, jobs: Int, cancellation: UpgradeCancellation,
        work: @escaping @Sendable (DatabaseSearch.Found, Int) -> FleetResult
    ) throws {
        self.files = files
        self.cancellation = cancellation
        self.work = work
        running = jobs
        for begun in 0..<running {
            do {
                try DetachedThread.start("job \(begun + 1)") { [self] in
                    takeAll(begun)
                    end()
                }
            } catch {
                guard begun > 0 else { throw error }
                // The other threads do the work of this one.
                end()
            }
        }
    }

    /// Returns the next result, in the order in which the files are finished; `nil` if there are no more.
    func nextResult() -> FleetResult? {
        lock.withLock {
            while results.isEmpty, running > 0 { lock.wait() }
            guard !results.isEmpty else { return nil }
            lock.wakeAll()
            return results.removeFirst()
        }
    }

    private func takeAll(_ job: Int) {
        while let file = take() {
            let result = work(file, job)
            lock.withLock {
                results.append(result)
                lock.wakeAll()
            }
        }
    }

    private func end() {
        lock.withLock {
            running -= 1
            lock.wakeAll()
        }
    }

    private func take() -> DatabaseSearch.Found? {
        lock.withLock { while results.count >= Self.mostWaiting { lock.wait() } }
        return cancellation.isCancelled ? nil : files.next()
    }
}
