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
            "With \(Option.json.usage), a command prints one JSON object on standard output, even if it fails.")
        for group in Command.groups {
            page += ".SH \(escaped(group.title.uppercased()))\n"
            for command in group.commands { page += section(command) }
        }
        page += ".SH EXIT STATUS\n"
        for (status, meaning) in ExitStatus.meanings { page += entry("\(status.code)", meaning) }
        page += ".SH FILES\n"
        page += paragraph("For a database DB, in its folder:")
        for (name, meaning) in files { page += entry(name, meaning) }
        page += ".SH ENVIRONMENT\n"
        for (name, meaning) in environment { page += entry(name, meaning) }
        page += ".SH SEE ALSO\n" + line("sqlcipher(1), sqlite3(1), systemd-creds(1), sysexits(3)")
        return page
    }

    private static let files = [
        ("DB-attempt", "the record of an upgrade that is under way or was interrupted; the next run finishes it"),
        ("DB-upgrade-*", "the copy that is being built, with 16 random digits; removed by the next run"),
        ("DB-plaintext", "the plaintext original, with --keep-backup or if damage requires it; remove it by hand"),
        ("DB-damaged", "the damaged database that recover replaced"),
        ("DB-wal, DB-shm, DB-journal", "SQLite's own files; they belong to DB and must be copied and moved with it"),
    ]

    private static let environment = [
        ("CREDENTIALS_DIRECTORY", "where systemd puts the credentials that --key-credential reads"),
        ("DBUS_SESSION_BUS_ADDRESS", "how --key-secret-service reaches the desktop's key store"),
        ("TERM", "with dumb, the progress line uses only carriage returns and spaces"),
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
