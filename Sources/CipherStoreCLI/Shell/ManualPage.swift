/// The manual page, in the macros of man(7).
package enum ManualPage {
    package static var text: String {
        var page = """
            .TH CIPHERSTORE 1 "" "cipherstore \(ToolVersion.number)" "User Commands"
            .SH NAME
            cipherstore \\- encrypt, migrate and read SQLite databases
            .SH SYNOPSIS
            .B cipherstore
            .I COMMAND
            .RI [ options ]
            .SH DESCRIPTION

            """
        page += line(HelpText.summary)
        page += paragraph(
            "With \(Option.json.usage), a command prints its result as JSON on standard output. If the command fails, "
                + "it prints an object that describes the error.")
        for group in Command.groups {
            page += ".SH \(escaped(group.title.uppercased()))\n"
            for command in group.commands { page += section(command) }
        }
        page += ".SH EXIT STATUS\n"
        for (status, meaning) in ExitStatus.meanings { page += entry("\(status.code)", meaning) }
        page += ".SH FILES\n"
        page += paragraph("A database DB can have these files next to it:")
        for (name, meaning) in files { page += entry(name, meaning) }
        page += ".SH ENVIRONMENT\n"
        for (name, meaning) in environment { page += entry(name, meaning) }
        page += ".SH SEE ALSO\n" + line("sqlcipher(1), sqlite3(1), systemd-creds(1), sysexits(3)")
        return page
    }

    private static let files = [
        ("DB-attempt", "the record of an upgrade in progress; if the upgrade is interrupted, the next run finishes it"),
        ("DB-upgrade-*", "the copy that an upgrade builds (*: 16 hexadecimal digits); the next run removes old copies"),
        ("DB-plaintext", "the plaintext original, kept because of --keep-backup or damage; delete it by hand"),
        ("DB-damaged", "the damaged database that a recovery replaced"),
        ("DB-wal, DB-shm, DB-journal", "SQLite's own files; copy and move them together with DB"),
    ]

    private static let environment = [
        ("CREDENTIALS_DIRECTORY", "the folder of the systemd credentials that --key-credential reads"),
        ("DBUS_SESSION_BUS_ADDRESS", "the address of the D-Bus session bus, which --key-secret-service uses"),
        ("TERM", "if TERM is dumb or unset, the progress bar is erased with spaces instead of an escape sequence"),
    ]

    private static func section(_ command: Command) -> String {
        var text = ".SS \(escaped(HelpText.usage(command)))\n" + line(command.summary)
        for note in command.notes { text += paragraph(note) }
        for operand in command.operands { text += entry(operand.name, operand.help) }
        for option in command.allOptions { text += entry(option.usage, option.help) }
        if let forms = KeyOptions.forms(command) { text += paragraph(forms) }
        if !command.examples.isEmpty { text += ".PP\nExamples:\n.PP\n.nf\n" }
        for example in command.examples { text += line("  cipherstore \(example)") }
        return text + (command.examples.isEmpty ? "" : ".fi\n")
    }

    private static func paragraph(_ text: String) -> String { ".PP\n" + line(text) }

    private static func entry(_ term: String, _ meaning: String) -> String {
        ".TP\n.B \(escaped(term))\n" + line(meaning)
    }

    private static func line(_ text: String) -> String {
        // A line that begins with one of these characters would be a request.
        (text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" : "") + escaped(text) + "\n"
    }

    private static func escaped(_ text: String) -> String {
        text.map { character in
            switch character {
            case "\\": "\\e"
            case "-": "\\-"
            case "'": "\\(aq"
            case "`": "\\(ga"
            default: String(character)
            }
        }.joined()
    }
}
