internal import CipherConfigurationText
internal import CipherErrors

/// A dictionary of a configuration file whose keys are known.
struct ConfigurationSection {
    private let node: ConfigurationNode
    private let entries: [String: ConfigurationNode]

    /// Checks that a value is a dictionary and that every key is known.
    init(_ node: ConfigurationNode, keys: [String]) throws {
        let entries = try node.entries()
        for (name, _) in entries where !keys.contains(name) {
            let suggestion = Suggestion.nearest(to: name, among: keys)
            throw node.failure(
                "unknown key \"\(ConfigurationNode.shown(name))\"",
                advice: suggestion.map { "did you mean \"\($0)\"?" }
                    ?? "the known keys are \(keys.joined(separator: ", "))")
        }
        self.node = node
        self.entries = Dictionary(uniqueKeysWithValues: entries.map { ($0.name, $0.node) })
    }

    /// The value of a key; `nil` if the key is omitted.
    subscript(key: String) -> ConfigurationNode? { entries[key] }

    /// Returns the value of a required key.
    func required(_ key: String) throws -> ConfigurationNode {
        guard let value = entries[key] else { throw node.failure("the key \"\(key)\" is missing") }
        return value
    }

    /// Creates an error about the dictionary as a whole.
    func failure(_ detail: String) -> StoreError { node.failure(detail) }

    /// Refuses keys that have no meaning in combination with another key.
    func forbid(_ keys: [String], because reason: String) throws {
        for key in keys {
            guard let value = entries[key] else { continue }
            throw value.failure(sentence: "\(value.subject) is not allowed \(reason)", advice: "omit this key")
        }
    }
}
