/// What an argument stands for, so that a shell can complete it.
enum ArgumentKind: Sendable, Equatable {
    /// Anything: nothing can be proposed.
    case text
    case file
    case directory
    /// The name of an environment variable.
    case variable
    /// A pattern for names of files: nothing can be proposed.
    case pattern
    /// One of a few words.
    case words([String])

    /// Whether it is made of names that the system gave, which are bytes and need not be text.
    var namesFile: Bool {
        switch self {
        case .file, .directory, .variable, .pattern: true
        case .text, .words: false
        }
    }
}
