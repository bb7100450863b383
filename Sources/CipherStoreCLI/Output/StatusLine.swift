internal import CipherPlatform

/// One line on standard error that is overwritten repeatedly, and erased at the end.
///
/// A terminal clears the rest of the line, whatever its previous width; for anything else, including a dumb terminal,
/// spaces are written.
struct StatusLine {
    private var drawnWidth = 0
    private let clears = isatty(2) == 1 && getenv("TERM").map { String(cString: $0) } ?? "dumb" != "dumb"

    /// Overwrites the previous line.
    mutating func draw(_ line: String) {
        let rest = clears ? "\u{1b}[K" : String(repeating: " ", count: max(0, drawnWidth - line.count))
        FileDescriptorStream.writeAll(Array("\r\(line)\(rest)".utf8), to: 2)
        drawnWidth = line.count
    }

    /// Erases the line.
    mutating func erase() {
        guard drawnWidth > 0 else { return }
        let blank = clears ? "\u{1b}[K" : String(repeating: " ", count: drawnWidth) + "\r"
        FileDescriptorStream.writeAll(Array("\r\(blank)".utf8), to: 2)
        drawnWidth = 0
    }

    /// Shows a text during `body` if standard error is a terminal.
    static func showing<Result>(_ text: String, _ body: () throws -> Result) rethrows -> Result {
        guard isatty(2) == 1 else { return try body() }
        var line = StatusLine()
        line.draw(String(text.prefix(max(0, terminalWidth - 1))))
        defer { line.erase() }
        return try body()
    }

    /// Returns a bar of `#` and `-` between a title and a tail, if there is room.
    static func bar(_ title: String, fraction: Double, _ tail: String, width: Int) -> String {
        let room = min(40, width - 1 - title.count - tail.count - 3)
        guard room >= 5 else { return String((title + tail).prefix(max(0, width - 1))) }
        let full = Int(Double(room) * fraction)
        return "\(title) [\(String(repeating: "#", count: full))\(String(repeating: "-", count: room - full))]\(tail)"
    }

    /// Returns a percentage in four columns.
    static func percentage(_ fraction: Double) -> String {
        let percent = String(Int(fraction * 100))
        return "\(String(repeating: " ", count: max(0, 3 - percent.count)))\(percent)%"
    }

    /// Returns the estimated remaining time; empty if it cannot be estimated.
    static func remaining(_ fraction: Double, seconds: Double) -> String {
        guard fraction > 0.02, fraction < 1 else { return "" }
        return "  ETA \(clock(seconds * (1 - fraction) / fraction))"
    }

    private static func clock(_ seconds: Double) -> String {
        let whole = Int(min(seconds, 359_999).rounded(.up))
        let minutes = whole / 60
        let rest = whole % 60 < 10 ? "0\(whole % 60)" : "\(whole % 60)"
        return "\(minutes):\(rest)"
    }

    static var terminalWidth: Int {
        var size = winsize()
        guard ioctl(2, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return TextLayout.width }
        return Int(size.ws_col)
    }
}
