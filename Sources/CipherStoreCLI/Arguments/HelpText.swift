internal import CipherSQLite

/// The help, made from the descriptions that the parser uses.
package enum HelpText {
    /// The column at which the explanations of options begin.
    private static let indent = 26
    /// The column at which the explanations of commands and numbers begin.
    private static let narrowIndent = 15

    static let summary = "Encrypts SQLite databases in place with SQLCipher, and checks, migrates and reads them."

    package static var version: String {
        "cipherstore \(ToolVersion.number) (SQLCipher \(Engine.current.cipherVersion), "
            + "SQLite \(Engine.current.sqliteVersion))\n"
            + (Engine.current.hasWALResetFault ? walResetFault : "") + faults
    }

    /// The known faults of the linked SQLite that an untrusted file can reach.
    private static var faults: String {
        let faults = Engine.current.faults
        guard !faults.isEmpty else { return "" }
        let entries = faults.map { fault in
            let fence = fault.fence.map { "fenced: \($0)" } ?? fault.advice.map { "not fenced: \($0)" } ?? "not fenced"
            return TextLayout.entry(fault.id, "\(fault.cause); \(fence); fixed in \(fault.fixedIn)", indent: indent)
        }
        return "\nKnown faults of this SQLite version that an untrusted file can reach:\n" + entries.joined()
    }

    private static let walResetFault = TextLayout.paragraph(
        "This SQLite version has a bug: if several programs write to a file in WAL mode, commits can be lost. SQLite "
            + "3.51.3 and SQLCipher 4.14 fix the bug. cipherstore avoids the bug, but any other program that writes to "
            + "the same file must set PRAGMA wal_autocheckpoint = 0.")

    static var overview: String {
        var text = "Usage: cipherstore COMMAND [options]\n\n"
        text += TextLayout.paragraph(summary)
        for group in Command.groups {
            text += "\n\(group.title):\n"
            for command in group.commands {
                text += TextLayout.entry(command.name, command.summary, indent: narrowIndent)
            }
        }
        text += "\nOptions:\n" + entries([.help, .version])
        text += "\nExit status:\n"
        for (status, meaning) in ExitStatus.meanings {
            text += TextLayout.entry("\(status.code)", meaning, indent: narrowIndent)
        }
        return text + "\n" + TextLayout.paragraph("Run `cipherstore help COMMAND` to see the options of a command.")
    }

    static func command(_ command: Command) -> String {
        var text = "Usage: \(usage(command))\n\n"
        text += TextLayout.paragraph(command.summary)
        for note in command.notes { text += "\n" + TextLayout.paragraph(note) }
        if !command.operands.isEmpty {
            text += "\nArguments:\n"
            for operand in command.operands { text += TextLayout.entry(operand.name, operand.help, indent: indent) }
        }
        text += "\nOptions:\n" + entries(command.allOptions)
        if let forms = KeyOptions.forms(command) { text += "\n" + TextLayout.paragraph(forms) }
        if !command.examples.isEmpty { text += "\nExamples:\n" }
        for example in command.examples { text += "  cipherstore \(example)\n" }
        return text
    }

    /// Returns a command's usage line, with its required arguments.
    static func usage(_ command: Command) -> String {
        let words =
            ["cipherstore", command.name] + command.operands.filter { !$0.isOptional }.map(\.usage)
            + command.options.filter(\.isRequired).map(\.usage) + ["[options]"]
        return words.joined(separator: " ")
    }

    private static func entries(_ options: [Option]) -> String {
        options.map { TextLayout.entry($0.usage, $0.help, indent: indent) }.joined()
    }
}
