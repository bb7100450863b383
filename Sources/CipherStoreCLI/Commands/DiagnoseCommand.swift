internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite

extension Command {
    static let diagnose = Command(
        name: "diagnose",
        summary: "Report why a key does not open a file, without changing the file.",
        operands: [.database],
        options: KeyOptions.key.all
            + [
                CipherOptions.compatibility, DiagnoseCommand.timeLimit, DiagnoseCommand.derivations,
                DiagnoseCommand.rounds,
            ],
        notes: [
            "Use this command if opening a database fails with \"file is not a database\". The command tries "
                + "the key as specified, and then tries to correct common mistakes: a raw key was used as a "
                + "passphrase, or a passphrase as a raw key; a newline, a NUL, quotes or a byte order mark was added "
                + "or removed; the hex digits are in the wrong case; or the key is in the wrong encoding. Every "
                + "variant of the key is tried with SQLCipher formats 1 to 4, and then with every number of PBKDF2 "
                + "rounds up to --max-rounds. The right key is recognized for any page size and HMAC algorithm.",
            "Because pages are authenticated, diagnose can tell a wrong key from a damaged page, a truncated file, or "
                + "the -wal of another file. If no combination of key and format opens the file, the key may be wrong, "
                + "the file may be encrypted in another way, or the file may not be a database. diagnose cannot tell "
                + "these cases apart.",
            "The exit status is 0 if the database opens with the specified key and format. Otherwise it is the "
                + "exit status of the error that opening the database would cause: for example, 65 if the key does "
                + "not open it, 66 if no key is specified, or 75 if a journal must be rolled back.",
        ],
        examples: ["diagnose app.db --key-file key", "diagnose app.db --key-file key --json --time-limit 300"],
        isToldByStatus: true,
        run: DiagnoseCommand.run)
}

enum DiagnoseCommand {
    static let timeLimit = Option(
        "time-limit", value: "SECONDS",
        "The time limit for each of the two phases, the key search and the page check (default: 60 seconds each).")
    static let derivations = Option(
        "max-derivations", value: "N", "The maximum number of keys to derive from passphrases (default: 1000).")
    static let rounds = Option(
        "max-rounds", value: "N", "The highest number of PBKDF2 rounds to try (default: 1000000).")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let provider = try KeyOptions.key.provider(invocation)
        var options = DiagnosisOptions()
        options.format = try CipherOptions.settings(invocation)
        options.timeLimit = try invocation.duration(timeLimit, default: options.timeLimit)
        options.maximumDerivations = try invocation.count(derivations, default: options.maximumDerivations)
        options.maximumRounds = try invocation.count(rounds, default: options.maximumRounds)
        let paths = try DatabasePaths(invocation.operands[0])
        let key = provider.map { provider in { try provider.diagnosableText(database: paths.database) } }
        let seconds = TerminalText.decimal(options.timeLimit.inSeconds, 0)
        let found = try StatusLine.showing("searching for the cause; this can take \(seconds) s") {
            try Diagnostician(paths, options, isAlone: true).run(keyText: key)
        }
        let report = Report(diagnosis: found, given: options.format)
        if invocation.has(.json) { try Output.json(report) } else { try report.print() }
        guard let first = found.causes.first else { return .done }
        // On a terminal, the report has just shown the cause.
        if invocation.has(.json) || !Output.isTerminal { Output.complain("\(found.path): \(first.detail)") }
        return ExitStatus(first.code)
    }

    private struct Report: Encodable {
        let diagnosis: Diagnosis
        let given: CipherSettings

        /// The option that opens the file; `nil` if no option is needed, or none opens it.
        var option: String? {
            guard let format = diagnosis.format,
                CipherOptions.text(of: format) != CipherOptions.text(of: CipherSettings())
            else { return nil }
            return "--\(CipherOptions.compatibility.name) \(CipherOptions.text(of: format))"
        }

        private enum CodingKeys: String, CodingKey { case option }

        func encode(to encoder: any Encoder) throws {
            try diagnosis.encode(to: encoder)
            var values = encoder.container(keyedBy: CodingKeys.self)
            try values.encodeIfPresent(option, forKey: .option)
        }

        func print() throws {
            var sheet = FactSheet()
            sheet.add("path", diagnosis.path)
            sheet.add("size", TerminalText.size(diagnosis.size))
            if diagnosis.causes.isEmpty { sheet.add("opens", "with the specified key and format") }
            for cause in diagnosis.causes {
                sheet.add("cause", "\(cause.kind.rawValue): \(cause.detail)")
                sheet.add("", cause.advice)
            }
            if diagnosis.format != nil, !diagnosis.causes.isEmpty {
                let form = diagnosis.keyForm.map(Self.name) ?? "key"
                sheet.add(
                    "opens with", "the \(form)" + (option.map { " and \($0)" } ?? " in the specified format"))
            }
            sheet.add(
                "tried",
                "\(diagnosis.derivations) key derivation\(diagnosis.derivations == 1 ? "" : "s"), "
                    + "\(TerminalText.grouped(Int64(diagnosis.rounds))) rounds")
            if !diagnosis.isComplete {
                sheet.add("limits", "the search stopped at a limit; raise --\(timeLimit.name) or --\(derivations.name)")
            }
            try sheet.print()
        }

        private static func name(_ form: CipherKey.Form) -> String {
            switch form {
            case .passphrase: "passphrase"
            case .raw: "raw key"
            case .rawWithSalt: "raw key with its salt"
            }
        }
    }
}
