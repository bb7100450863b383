internal import CipherDatabaseConversion
internal import CipherPlatform
internal import CipherSystemFiles

/// One line on standard error that shows the progress of a fleet.
package final class FleetBar: @unchecked Sendable {
    // Everything that changes is read and written only under `lock`.
    private let lock = Lock()
    /// The number of files and their weight; `nil` if it is not known before the last file.
    private let total: Total?
    private let began = ContinuousClock.now
    private var drawn: ContinuousClock.Instant?
    private var status = StatusLine()
    private var finished = 0
    private var failed = 0
    private var weight = 0.0
    /// The files in progress, by the bytes of their paths.
    private var fractions: [[UInt8]: (weight: Double, fraction: Double)] = [:]

    typealias Total = (files: Int, weight: Double)

    /// Creates a line; `nil` if none is to be drawn.
    ///
    /// - Parameter count: Counts the files; called only if the line is drawn.
    init?(_ mode: ProgressBar.Mode, counting count: () throws -> Total?) rethrows {
        switch mode {
        case .always: break
        case .never: return nil
        case .auto: guard isatty(2) == 1 else { return nil }
        }
        total = try count()
    }

    /// Returns the weight of a file: its size and a fixed cost for key derivation and syncs.
    static func weight(_ file: DatabaseSearch.Found) -> Double { Double(file.size) + 1e6 }

    /// Records the progress of a file.
    func update(_ file: DatabaseSearch.Found, _ fraction: Double) {
        lock.withLock {
            fractions[Array(file.path.utf8)] = (Self.weight(file), fraction)
            draw(file.path)
        }
    }

    /// Records a finished file.
    func finish(_ file: DatabaseSearch.Found, failed isFailed: Bool) {
        lock.withLock {
            fractions[Array(file.path.utf8)] = nil
            weight += Self.weight(file)
            finished += 1
            if isFailed { failed += 1 }
            draw(file.path)
        }
    }

    /// Erases the line until the next update.
    func erase() {
        lock.withLock { status.erase() }
    }

    private func draw(_ path: String) {
        let now = ContinuousClock.now
        if let drawn, now - drawn < .milliseconds(100) { return }
        drawn = now
        guard let total else { return status.draw(Self.line(finished: finished, failed: failed)) }
        let underWay = fractions.values.reduce(0) { $0 + $1.weight * $1.fraction }
        status.draw(
            Self.line(
                finished: finished, failed: failed, total: total.files,
                fraction: min(1, (weight + underWay) / max(1, total.weight)),
                seconds: (now - began).inSeconds, width: StatusLine.terminalWidth))
    }

    /// Returns the line of a run whose number of files is not known.
    private static func line(finished: Int, failed: Int) -> String {
        TerminalText.grouped(finished) + " databases" + failures(failed)
    }

    private static func failures(_ failed: Int) -> String {
        failed > 0 ? "  \(TerminalText.grouped(failed)) failed" : ""
    }

    /// Returns the line, shorter than the terminal's width.
    package static func line(
        finished: Int, failed: Int, total: Int, fraction: Double, seconds: Double, width: Int
    ) -> String {
        let tail =
            " " + StatusLine.percentage(fraction) + failures(failed)
            + StatusLine.remaining(fraction, seconds: seconds)
        return StatusLine.bar(
            "\(TerminalText.grouped(finished)) of \(TerminalText.grouped(total))", fraction: fraction, tail,
            width: width)
    }
}
