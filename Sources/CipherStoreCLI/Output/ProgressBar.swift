package import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// One line on standard error that tells how far an upgrade is, and is gone when it has ended.
package final class ProgressBar: @unchecked Sendable {
    /// When the bar is drawn.
    enum Mode: String, CaseIterable { case auto, always, never }

    // Everything below is read and written only under `lock`.
    private let lock = Lock()
    private let began = ContinuousClock.now
    private var stage: UpgradeStage?
    private var stageBegan = ContinuousClock.now
    private var drawn: ContinuousClock.Instant?
    private var status = StatusLine()
    private let isRehearsal: Bool

    private init(isRehearsal: Bool) { self.isRehearsal = isRehearsal }

    /// A bar; `nil` if none is to be drawn.
    ///
    /// - Parameter isRehearsal: Whether nothing is swapped at the end.
    static func make(_ mode: Mode, isRehearsal: Bool = false) -> ProgressBar? {
        switch mode {
        case .always: ProgressBar(isRehearsal: isRehearsal)
        case .never: nil
        case .auto: isatty(2) == 1 ? ProgressBar(isRehearsal: isRehearsal) : nil
        }
    }

    /// Takes note of the progress, and draws it a few times in a second.
    func update(_ progress: UpgradeProgress) {
        lock.withLock {
            let now = ContinuousClock.now
            if isRehearsal, progress.stage == .swapping { return }
            let isNewStage = progress.stage != stage
            if isNewStage {
                stage = progress.stage
                stageBegan = now
            }
            if !isNewStage, let drawn, now - drawn < .milliseconds(100) { return }
            drawn = now
            status.draw(
                Self.line(
                    progress, seconds: (now - began).inSeconds,
                    stageSeconds: (now - stageBegan).inSeconds, width: StatusLine.terminalWidth))
        }
    }

    /// Takes the line away.
    func end() {
        lock.withLock { status.erase() }
    }

    /// The line, shorter than the terminal is wide.
    package static func line(_ progress: UpgradeProgress, seconds: Double, stageSeconds: Double, width: Int) -> String {
        var tail = " " + StatusLine.percentage(progress.fraction)
        let speed = stageSeconds > 0 ? Double(progress.bytes) / 1e6 / stageSeconds : 0
        if speed >= 1 { tail += "  \(TerminalText.decimal(speed, 0)) MB/s" }
        tail += StatusLine.remaining(progress.fraction, seconds: seconds)
        return StatusLine.bar(progress.stage.title, fraction: progress.fraction, tail, width: width)
    }
}

extension UpgradeStage {
    /// What people read.
    fileprivate var title: String {
        switch self {
        case .quiescing: "preparing "
        case .building: "encrypting"
        case .proving: "proving   "
        case .migrating: "migrating "
        case .swapping: "swapping  "
        }
    }
}
