internal import CipherErrors
package import CipherSystemFiles

/// Reports the progress of an upgrade to the caller, and cancels the upgrade on request.
///
/// It is used by one thread at a time, except for ``isCancelled``.
package final class UpgradeObserver {
    /// The share of the whole work that is done at the end of each stage, as measured with a chat database.
    private static let ends: [UpgradeStage: Double] = [
        .quiescing: 0.02, .building: 0.60, .proving: 0.94, .migrating: 0.97, .swapping: 1,
    ]

    private let report: (@Sendable (UpgradeProgress) -> Void)?
    private let cancellation: UpgradeCancellation?
    private let path: String
    private var stage = UpgradeStage.quiescing
    private var start = 0.0
    private var latest = 0.0
    private var stageBegan = ContinuousClock.now
    private var seconds: [UpgradeStage: Double] = [:]
    var totalBytes: Int64 = 0

    package init(path: String, report: (@Sendable (UpgradeProgress) -> Void)?, cancellation: UpgradeCancellation?) {
        self.path = path
        self.report = report
        self.cancellation = cancellation
    }

    func begin(_ stage: UpgradeStage) throws {
        endStage()
        start = self.stage == stage ? 0 : Self.ends[self.stage] ?? 0
        self.stage = stage
        stageBegan = ContinuousClock.now
        update(bytes: 0)
        try checkCancellation()
    }

    func endStage() {
        seconds[stage, default: 0] += (ContinuousClock.now - stageBegan).inSeconds
        stageBegan = ContinuousClock.now
    }

    /// The wall-clock time of each stage in seconds.
    var secondsByName: [String: Double] {
        Dictionary(uniqueKeysWithValues: seconds.map { ($0.key.rawValue, $0.value) })
    }

    /// Runs the stages, and adds the current stage to an error.
    func locating<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch var error as StoreError {
            endStage()
            error.stage = stage
            error.stageSeconds = secondsByName
            throw error
        }
    }

    /// Records the number of bytes that this stage has processed.
    func update(bytes: Int64) {
        guard let report else { return }
        let share = totalBytes > 0 ? min(1, max(0, Double(bytes) / Double(totalBytes))) : 0
        let fraction = start + share * ((Self.ends[stage] ?? 1) - start)
        latest = max(latest, fraction)
        report(UpgradeProgress(stage: stage, fraction: latest, bytes: min(bytes, totalBytes), totalBytes: totalBytes))
    }

    func finish() {
        endStage()
        latest = 1
        report?(UpgradeProgress(stage: .swapping, fraction: 1, bytes: totalBytes, totalBytes: totalBytes))
    }

    var isCancelled: Bool { cancellation?.isCancelled ?? false }

    func checkCancellation() throws {
        guard isCancelled else { return }
        throw StoreError.cancelled(path)
    }
}
