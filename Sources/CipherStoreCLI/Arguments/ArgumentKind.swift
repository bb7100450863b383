/// The kind of value that an argument takes, so that a shell can complete it.
enum ArgumentKind: Sendable, Equatable {
    /// Any text; there is nothing to complete.
    case text
    case file
    case directory
    /// The name of an environment variable.
    case variable
    /// A pattern for file names; there is nothing to complete.
    case pattern
    /// One of a few words.
    case words([String])

    /// Whether the value consists of names from the operating system, which are bytes and need not be valid text.
    var namesFile: Bool {
        switch self {
        case .file, .directory, .variable, .pattern: true
        case .text, .words: false
        }
    }
}
