/// What an argument stands for, so that a shell can complete it.
enum ArgumentKind: Sendable, Equatable {
    /// Anything: nothing can be proposed.
    case text
    case file
    case directory
    /// The name of an environment variable.
    case variable
    /// One of a few words.
    case words([String])
}
