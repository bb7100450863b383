internal import CipherDatabaseConversion
internal import CipherSystemFiles

/// Threads that work through files, each taking the next one.
///
/// What they have in hand is bounded: so many jobs, and so many results that wait to be told of.
final class FleetWorkers: @unchecked Sendable {
    private static let mostWaiting = 64

    // Everything that changes is read and written only under `lock`.
    private let lock = Lock()
    private let files: FleetFiles
    private let work: @Sendable (DatabaseSearch.Found) -> FleetResult
    private let cancellation: UpgradeCancellation
    private var running = 0
    private var results: [FleetResult] = []

    /// Starts the threads, as many as there are jobs or as the system has to give.
    ///
    /// - Throws: ``StoreError`` where it gives none.
    init(
        _ files: FleetFiles, jobs: Int, cancellation: UpgradeCancellation,
        work: @escaping @Sendable (DatabaseSearch.Found) -> FleetResult
    ) throws {
        self.files = files
        self.cancellation = cancellation
        self.work = work
        running = jobs
        for begun in 0..<running {
            do {
                try DetachedThread.start("job \(begun + 1)") { [self] in
                    takeAll()
                    end()
                }
            } catch {
                guard begun > 0 else { throw error }
                // The others do its work.
                end()
            }
        }
    }

    /// The next result, in the order in which the files are finished; `nil` once there are no more.
    func nextResult() -> FleetResult? {
        lock.withLock {
            while results.isEmpty, running > 0 { lock.wait() }
            guard !results.isEmpty else { return nil }
            lock.wakeAll()
            return results.removeFirst()
        }
    }

    private func takeAll() {
        while let file = take() {
            let result = work(file)
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
