/// The options and operands of a command line.
package struct Invocation: Sendable {
    private let values: [String: [String]]
    /// The operands; ``Tool`` checks that their number fits the command.
    package var operands: [String]

    init(values: [String: [String]], operands: [String]) {
        self.values = values
        self.operands = operands
    }

    /// Returns whether an option was specified.
    package func has(_ option: Option) -> Bool { values[option.name] != nil }

    /// The value of an option; `nil` if it was not specified.
    subscript(_ option: Option) -> String? { values[option.name]?.last }

    /// Returns the values of an option that may be repeated.
    func all(_ option: Option) -> [String] { values[option.name] ?? [] }

    /// Returns the specified options, each with its value, except for `others`.
    func given(except others: [Option]) -> [String: String] {
        values.filter { name, _ in !others.contains { $0.name == name } }.compactMapValues(\.last)
    }

    /// Returns the value of an option that the command requires.
    func required(_ option: Option) throws -> String {
        guard let value = self[option] else { throw CommandFailure.usage("\(option.usage) is required") }
        return value
    }

    /// Returns the value of an option that takes one of a few words.
    func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ option: Option, default fallback: Choice
    ) throws -> Choice {
        guard let text = self[option] else { return fallback }
        guard let choice = Choice(rawValue: text) else {
            let words = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw CommandFailure.usage("--\(option.name) must be one of \(words)")
        }
        return choice
    }

    /// Returns the value of an option that is a number of mebibytes, in bytes.
    func mebibytes(_ option: Option, default fallback: Int) throws -> Int {
        guard let text = self[option] else { return fallback << 20 }
        guard let number = Int(text), (0...1 << 20).contains(number) else {
            throw CommandFailure.usage("--\(option.name) must be a number of MiB from 0 to \(1 << 20)")
        }
        return number << 20
    }

    /// Returns the value of an option that is a number of at least `least`.
    func count(_ option: Option, default fallback: Int, from least: Int = 1) throws -> Int {
        guard let text = self[option] else { return fallback }
        guard let number = Int(text), (least...Int(Int32.max)).contains(number) else {
            throw CommandFailure.usage("--\(option.name) must be a whole number, \(least) or greater")
        }
        return number
    }

    /// Returns the value of an option that is a number of seconds.
    func duration(_ option: Option, default fallback: Duration) throws -> Duration {
        guard let text = self[option] else { return fallback }
        // No one waits longer than a day.
        guard let seconds = Double(text), (0...86_400).contains(seconds) else {
            throw CommandFailure.usage("--\(option.name) must be a number of seconds from 0 to 86400")
        }
        return .seconds(seconds)
    }
}
