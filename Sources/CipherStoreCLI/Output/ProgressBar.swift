package import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// One line on standard error that shows the progress of an upgrade, and is erased at its end.
package final class ProgressBar: @unchecked Sendable {
    /// The condition under which the bar is drawn.
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

    /// Returns a bar; `nil` if none is to be drawn.
    ///
    /// - Parameter isRehearsal: Whether the run ends without a swap.
    static func make(_ mode: Mode, isRehearsal: Bool = false) -> ProgressBar? {
        switch mode {
        case .always: ProgressBar(isRehearsal: isRehearsal)
        case .never: nil
        case .auto: isatty(2) == 1 ? ProgressBar(isRehearsal: isRehearsal) : nil
        }
    }

    /// Records the progress, and draws it a few times per second.
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

    /// Erases the line.
    func end() {
        lock.withLock { status.erase() }
    }

    /// Returns the line, shorter than the terminal's width.
    package static func line(_ progress: UpgradeProgress, seconds: Double, stageSeconds: Double, width: Int) -> String {
        var tail = " " + StatusLine.percentage(progress.fraction)
        let speed = stageSeconds > 0 ? Double(progress.bytes) / 1e6 / stageSeconds : 0
        if speed >= 1 { tail += "  \(TerminalText.decimal(speed, 0)) MB/s" }
        tail += StatusLine.remaining(progress.fraction, seconds: seconds)
        return StatusLine.bar(progress.stage.title, fraction: progress.fraction, tail, width: width)
    }
}

extension UpgradeStage {
    /// The title that is printed.
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
