import CipherStore
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// One line on standard error that tells how far an upgrade is, and is gone when it has ended.
final class ProgressBar: @unchecked Sendable {
    /// When the bar is drawn.
    enum Mode: String, CaseIterable { case auto, always, never }

    // Everything below is read and written only under `lock`.
    private let lock = NSLock()
    private let began = DispatchTime.now()
    private var stage: UpgradeProgress.Stage?
    private var stageBegan = DispatchTime.now()
    private var drawn = DispatchTime(uptimeNanoseconds: 0)
    private var drawnWidth = 0

    /// A bar; `nil` where none is to be drawn.
    static func make(_ mode: Mode) -> ProgressBar? {
        switch mode {
        case .always: ProgressBar()
        case .never: nil
        case .auto: isatty(2) == 1 ? ProgressBar() : nil
        }
    }

    /// Takes note of the progress, and draws it a few times in a second.
    func update(_ progress: UpgradeProgress) {
        lock.withLock {
            let now = DispatchTime.now()
            let isNewStage = progress.stage != stage
            if isNewStage {
                stage = progress.stage
                stageBegan = now
            }
            guard isNewStage || seconds(from: drawn, to: now) >= 0.1 else { return }
            drawn = now
            draw(
                Self.line(
                    progress, seconds: seconds(from: began, to: now),
                    stageSeconds: seconds(from: stageBegan, to: now), width: Self.terminalWidth))
        }
    }

    /// Takes the line away.
    func end() {
        lock.withLock {
            guard drawnWidth > 0 else { return }
            FileDescriptorStream.writeAll(Array("\r\(String(repeating: " ", count: drawnWidth))\r".utf8), to: 2)
            drawnWidth = 0
        }
    }

    // Carriage returns and spaces only, which every terminal understands.
    private func draw(_ line: String) {
        let rest = String(repeating: " ", count: max(0, drawnWidth - line.count))
        FileDescriptorStream.writeAll(Array("\r\(line)\(rest)".utf8), to: 2)
        drawnWidth = line.count
    }

    private func seconds(from start: DispatchTime, to end: DispatchTime) -> Double {
        Double(end.uptimeNanoseconds - start.uptimeNanoseconds) / 1e9
    }

    /// The line, shorter than the terminal is wide.
    static func line(_ progress: UpgradeProgress, seconds: Double, stageSeconds: Double, width: Int) -> String {
        let percent = String(Int(progress.fraction * 100))
        var tail = " \(String(repeating: " ", count: max(0, 3 - percent.count)))\(percent)%"
        if stageSeconds > 0, progress.bytes > 0 {
            tail += "  \(TerminalText.decimal(Double(progress.bytes) / 1e6 / stageSeconds, 0)) MB/s"
        }
        if progress.fraction > 0.02, progress.fraction < 1 {
            tail += "  ETA \(clock(seconds * (1 - progress.fraction) / progress.fraction))"
        }
        let name = progress.stage.title
        let room = min(40, width - 1 - name.count - tail.count - 3)
        guard room >= 5 else { return String((name + tail).prefix(max(0, width - 1))) }
        let full = Int(Double(room) * progress.fraction)
        return "\(name) [\(String(repeating: "#", count: full))\(String(repeating: "-", count: room - full))]\(tail)"
    }

    private static func clock(_ seconds: Double) -> String {
        let whole = Int(min(seconds, 359_999).rounded(.up))
        let minutes = whole / 60
        let rest = whole % 60 < 10 ? "0\(whole % 60)" : "\(whole % 60)"
        return "\(minutes):\(rest)"
    }

    private static var terminalWidth: Int {
        var size = winsize()
        guard ioctl(2, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return TextLayout.width }
        return Int(size.ws_col)
    }
}

extension UpgradeProgress.Stage {
    /// What people read.
    fileprivate var title: String {
        switch self {
        case .quiescing: "preparing "
        case .building: "encrypting"
        case .proving: "proving   "
        case .swapping: "swapping  "
        }
    }
}
