/// Labelled facts for people, in two aligned columns.
struct FactSheet {
    private var facts: [(label: String, value: String)] = []

    /// Adds a fact, unless the value is `nil`.
    mutating func add(_ label: String, _ value: String?) {
        if let value { facts.append((label, value)) }
    }

    /// Prints the facts.
    func print() throws {
        let width = (facts.map(\.label.count).max() ?? 0) + 2
        for fact in facts {
            try Output.line(fact.label + String(repeating: " ", count: width - fact.label.count) + fact.value)
        }
    }
}
