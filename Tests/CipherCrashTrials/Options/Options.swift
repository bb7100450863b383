/// The arguments after the kind of trials on the command line.
struct Options {
    /// An invalid command line, with the correct usage.
    struct UsageError: Error {
        let usage: String
    }

    /// The words that are not options.
    private(set) var words: [String] = []
    private var values: [String: String] = [:]
    private let usage: String

    /// - Parameters:
    ///   - valued: The options with a value.
    ///   - flags: The options without a value.
    ///   - allowed: The other words; `nil` for any.
    init(
        _ arguments: some Sequence<String>, usage: String, valued: [String], flags: [String] = [],
        words allowed: [String]? = []
    ) throws {
        self.usage = "usage: Scripts/\(usage)"
        var rest = Array(arguments)[...]
        while let word = rest.popFirst() {
            if valued.contains(word) {
                guard let value = rest.popFirst() else { throw UsageError(usage: "\(word) needs a value") }
                values[word] = value
            } else if flags.contains(word) {
                values[word] = ""
            } else if !word.hasPrefix("-"), allowed?.contains(word) ?? true {
                words.append(word)
            } else {
                throw UsageError(usage: self.usage)
            }
        }
    }

    subscript(_ name: String) -> String? { values[name] }

    func has(_ flag: String) -> Bool { values[flag] != nil }

    /// Returns the value of an option, a number above zero.
    func number(_ name: String) throws -> Int? {
        guard let value = values[name] else { return nil }
        guard let number = Int(value), number > 0 else { throw UsageError(usage: "\(name) needs a number") }
        return number
    }
}
