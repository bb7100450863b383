/// Lays text out in lines for a terminal.
enum TextLayout {
    static let width = 80

    /// Returns text broken into lines between words, with a newline at the end.
    static func paragraph(_ text: String) -> String {
        lines(text, width: width).joined(separator: "\n") + "\n"
    }

    /// Returns a term and, in a second column, its meaning.
    static func entry(_ term: String, _ meaning: String, indent: Int) -> String {
        let margin = String(repeating: " ", count: indent)
        var text = "  " + term
        // A long term takes its own line.
        text += text.count + 1 < indent ? String(repeating: " ", count: indent - text.count) : "\n" + margin
        return text + lines(meaning, width: width - indent).joined(separator: "\n" + margin) + "\n"
    }

    private static func lines(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return lines + [line]
    }
}
