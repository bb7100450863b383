import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A window in a terminal, which is redrawn with each frame.
///
/// Without a terminal, only the last frame is printed.
@MainActor
final class Window {
    private let isTerminal = isatty(STDOUT_FILENO) == 1
    /// Each frame is also written to this file, followed by a form feed.
    private let recording: FileHandle?
    private var latest: [String] = []

    /// - Parameter path: The file for the recording; `nil` for none.
    init(recording path: String?) throws {
        if let path {
            guard FileManager.default.createFile(atPath: path, contents: nil) else {
                throw CocoaError(.fileWriteUnknown)
            }
            recording = FileHandle(forWritingAtPath: path)
        } else {
            recording = nil
        }
        // Switches to the alternate screen and hides the cursor.
        if isTerminal { write("\u{1b}[?1049h\u{1b}[?25l") }
    }

    func draw(_ lines: [String]) throws {
        latest = lines
        if isTerminal { write("\u{1b}[H" + lines.map { $0 + "\u{1b}[K\r\n" }.joined() + "\u{1b}[J") }
        try recording?.write(contentsOf: Data((lines.joined(separator: "\n") + "\n\u{c}\n").utf8))
    }

    /// Restores the terminal, with the last frame in it.
    func close() throws {
        if isTerminal { write("\u{1b}[?25h\u{1b}[?1049l") }
        for line in latest { print(line) }
        try recording?.close()
    }

    private func write(_ text: String) {
        FileHandle.standardOutput.write(Data(text.utf8))
    }
}
