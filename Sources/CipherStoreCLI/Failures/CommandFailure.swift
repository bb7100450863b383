/// A failure that the command line itself detected.
struct CommandFailure: Error, Sendable, Equatable {
    let status: ExitStatus
    /// The kind of failure, for programs.
    let code: String
    let path: String?
    /// What happened.
    let message: String
    /// What to do next.
    let advice: String

    init(_ status: ExitStatus, _ code: String, path: String? = nil, _ message: String, advice: String = "") {
        self.status = status
        self.code = code
        self.path = path
        self.message = message
        self.advice = advice
    }

    static func usage(_ message: String, advice: String = "") -> CommandFailure {
        CommandFailure(.usage, "usage", message, advice: advice)
    }

    /// Returns the same failure with a pointer to the help, if it has no advice.
    func pointing(to help: String) -> CommandFailure {
        guard status == .usage, advice.isEmpty else { return self }
        return CommandFailure(status, code, path: path, message, advice: "see \(help)")
    }
}
