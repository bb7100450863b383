/// A long option of a command.
package struct Option: Sendable {
    /// The name without the dashes.
    let name: String
    /// The placeholder for the value in the help, such as `FILE`; `nil` for an option without a value.
    let value: String?
    /// The kind of the value.
    let kind: ArgumentKind
    /// What the option does, for the help.
    let help: String
    /// Whether the command requires the option.
    package let isRequired: Bool
    /// Whether the option may be repeated.
    let isRepeatable: Bool

    init(
        _ name: String, value: String? = nil, kind: ArgumentKind = .text, isRequired: Bool = false,
        isRepeatable: Bool = false, _ help: String
    ) {
        self.name = name
        self.value = value
        self.kind = kind
        self.help = help
        self.isRequired = isRequired
        self.isRepeatable = isRepeatable
    }

    /// How the option is written, such as `--key-file FILE`.
    var usage: String { "--\(name)" + (value.map { " \($0)" } ?? "") }
}

extension Option {
    static let help = Option("help", "Print this help and exit.")
    static let version = Option("version", "Print the versions of cipherstore and its engine, and exit.")
    static let json = Option("json", "Print the result as JSON on standard output.")
    static let progress = Option(
        "progress", value: "WHEN", kind: .words(ProgressBar.Mode.allCases.map(\.rawValue)),
        "When to show a progress bar on standard error: always, never, or auto (the default), which shows it only on a "
            + "terminal.")
    static let lockTimeout = Option(
        "lock-timeout", value: "SECONDS",
        "How long to wait for another upgrade in the same folder to finish (default: 120 seconds).")
    static let busyTimeout = Option(
        "busy-timeout", value: "SECONDS",
        "How long to wait for other connections to release their locks on the database (default: 5 seconds).")
}
