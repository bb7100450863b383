import CipherStore
import Foundation

/// Threads that work through a list of files, each taking the next one.
///
/// What they have in hand is bounded: so many jobs, and so many results that wait to be told of.
final class FleetWorkers: @unchecked Sendable {
    private static let mostWaiting = 64

    // Everything that changes is read and written only while `condition` is locked.
    private let condition = NSCondition()
    private let files: [DatabaseSearch.Found]
    private let work: @Sendable (DatabaseSearch.Found) -> FleetResult
    private let cancellation: UpgradeCancellation
    private var next = 0
    private var running = 0
    private var results: [FleetResult] = []

    init(
        _ files: [DatabaseSearch.Found], jobs: Int, cancellation: UpgradeCancellation,
        work: @escaping @Sendable (DatabaseSearch.Found) -> FleetResult
    ) {
        self.files = files
        self.cancellation = cancellation
        self.work = work
        running = min(jobs, files.count)
        for number in 0..<running {
            WorkThread.start("job \(number + 1)") { [self] in runThread() }
        }
    }

    /// The next result, in the order in which the files are finished; `nil` once there are no more.
    func nextResult() -> FleetResult? {
        condition.lock()
        defer { condition.unlock() }
        while results.isEmpty, running > 0 { condition.wait() }
        guard !results.isEmpty else { return nil }
        condition.broadcast()
        return results.removeFirst()
    }

    /// The files that no job has taken, once all jobs have ended.
    var notBegun: ArraySlice<DatabaseSearch.Found> {
        condition.withLock { files[next...] }
    }

    private func runThread() {
        while let file = take() {
            let result = work(file)
            condition.withLock {
                results.append(result)
                condition.broadcast()
            }
        }
        condition.withLock {
            running -= 1
            condition.broadcast()
        }
    }

    private func take() -> DatabaseSearch.Found? {
        condition.lock()
        defer { condition.unlock() }
        while results.count >= Self.mostWaiting { condition.wait() }
        guard next < files.count, !cancellation.isCancelled else { return nil }
        next += 1
        return files[next - 1]
    }
}
