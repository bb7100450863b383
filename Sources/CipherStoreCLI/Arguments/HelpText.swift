import CipherSQLite

/// The help, made from the descriptions that the parser uses.
enum HelpText {
    static let width = 80
    /// Where the explanations of options begin.
    private static let indent = 26

    static var version: String {
        "cipherstore \(Tool.version) (SQLCipher \(Engine.current.cipherVersion), "
            + "SQLite \(Engine.current.sqliteVersion))\n"
    }

    static var overview: String {
        var text = "Usage: cipherstore COMMAND [options]\n\n"
        text += wrapped("Encrypts SQLite databases in place with SQLCipher, and checks, migrates and reads them.")
        text += "\nCommands:\n"
        for command in Command.all { text += entry(command.name, command.summary, indent: 12) }
        text += "\nOptions:\n"
        for option in [Option.help, .version] { text += entry(option.usage, option.help, indent: indent) }
        text += "\nExit status:\n"
        for (status, meaning) in ExitStatus.meanings { text += entry("\(status.code)", meaning, indent: 12) }
        text += "\n" + wrapped("`cipherstore COMMAND --help` tells about a command.")
        return text
    }

    static func command(_ command: Command) -> String {
        let usage =
            ["cipherstore", command.name] + command.operands.map(\.name)
            + command.options.filter(\.isRequired).map(\.usage) + ["[options]"]
        var text = "Usage: \(usage.joined(separator: " "))\n\n"
        text += wrapped(command.summary)
        for note in command.notes { text += "\n" + wrapped(note) }
        if !command.operands.isEmpty {
            text += "\nArguments:\n"
            for operand in command.operands { text += entry(operand.name, operand.help, indent: indent) }
        }
        text += "\nOptions:\n"
        for option in command.allOptions { text += entry(option.usage, option.help, indent: indent) }
        return text
    }

    private static func entry(_ term: String, _ help: String, indent: Int) -> String {
        let lines = lines(help, width: width - indent)
        let margin = String(repeating: " ", count: indent)
        var text = "  " + term
        // A long term has a line of its own.
        text += text.count < indent ? String(repeating: " ", count: indent - text.count) : "\n" + margin
        return text + lines.joined(separator: "\n" + margin) + "\n"
    }

    private static func wrapped(_ text: String) -> String {
        lines(text, width: width).joined(separator: "\n") + "\n"
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
