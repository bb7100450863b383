package import CipherErrors
internal import CipherSystemFiles

/// A value of a configuration file together with its place, so that every error can name the place.
package struct ConfigurationNode {
    package let value: ConfigurationValue
    /// The path to the value, such as `dbTables[2].chat[1]`; empty for the whole file.
    package let place: String
    package let file: String

    package init(value: ConfigurationValue, place: String, file: String) {
        self.value = value
        self.place = place
        self.file = file
    }

    package func failure(_ detail: String, advice: String = "") -> StoreError {
        StoreError(.configuration, path: file, place.isEmpty ? detail : "\(place): \(detail)", advice: advice)
    }

    /// Returns a failure described by a sentence whose subject is this value.
    package func failure(sentence: String, advice: String = "") -> StoreError {
        StoreError(.configuration, path: file, sentence, advice: advice)
    }

    /// The value's place as the subject of a sentence.
    package var subject: String { place.isEmpty ? "the file" : place }

    /// Returns the failure of a value below this one.
    package func failure(at part: String, _ detail: String, advice: String) -> StoreError {
        StoreError(.configuration, path: file, "\(place).\(part): \(detail)", advice: advice)
    }

    package func mismatch(_ wanted: String) -> StoreError {
        failure(sentence: "\(subject) must be \(wanted), not \(value.kind)")
    }

    /// Returns the value as true or false; a number is neither.
    package func boolean() throws -> Bool {
        guard case .boolean(let boolean) = value else { throw mismatch("true or false") }
        return boolean
    }

    /// Returns the value as a whole number within a range.
    package func wholeNumber(in range: ClosedRange<Int>) throws -> Int {
        guard case .integer(let number) = value else { throw mismatch("a whole number") }
        guard range.contains(number) else {
            throw failure(sentence: "\(subject) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Returns the value as text without NUL characters, which may be empty.
    package func text() throws -> String {
        guard case .text(let text) = value else { throw mismatch("text") }
        guard !text.utf8.contains(0) else { throw failure(sentence: "\(subject) contains a NUL character") }
        return text
    }

    /// Returns the value as the name of a file in a folder that is specified elsewhere.
    package func fileName() throws -> String {
        let name = try text()
        if let fault = FileName.fault(of: name) {
            throw failure(sentence: "\(subject) must be a file name without a folder, but it \(fault)")
        }
        return SystemPath.text(name.utf8)
    }

    /// Returns the value as the name of a table or column.
    package func schemaName() throws -> String {
        let name = try text()
        guard !name.isEmpty else { throw failure(sentence: "\(subject) is empty") }
        return name
    }

    /// Returns the value as one of the words of an enumeration.
    package func choice<Choice: RawRepresentable<String> & CaseIterable>(_ type: Choice.Type = Choice.self) throws
        -> Choice
    {
        try choice(from: Choice.allCases.map(\.rawValue), Choice.init(rawValue:))
    }

    private func choice<Choice>(from words: [String], _ make: (String) -> Choice?) throws -> Choice {
        let list = words.map { "\"\($0)\"" }.joined(separator: " or ")
        guard case .text(let word) = value else { throw mismatch(list) }
        guard let choice = make(word) else {
            let suggestion = Suggestion.nearest(to: word, among: words)
            throw failure(
                sentence: "\(subject) must be \(list), not \"\(Self.shown(word))\"",
                advice: suggestion.map { "did you mean \"\($0)\"?" } ?? "")
        }
        return choice
    }

    /// Returns the elements of a list.
    package func elements() throws -> [ConfigurationNode] {
        guard case .list(let elements) = value else { throw mismatch("a list") }
        return elements.enumerated().map { index, element in
            ConfigurationNode(value: element, place: Self.path(place, index: index), file: file)
        }
    }

    /// Returns the only entry of a dictionary with one key.
    ///
    /// A list of dictionaries with one key each keeps an order, which a single dictionary does not have.
    package func singleEntry(_ what: String) throws -> (name: String, node: ConfigurationNode) {
        guard case .dictionary(let entries) = value else { throw mismatch("a dictionary with one \(what)") }
        guard let entry = entries.first, entries.count == 1 else {
            throw failure(
                sentence: "\(subject) must be a dictionary with one \(what), but it has \(entries.count) keys",
                advice: "put each \(what) in its own dictionary in the list, because the keys of a dictionary "
                    + "have no order")
        }
        return (entry.key, child(entry.key, entry.value))
    }

    /// Returns all entries of a dictionary, sorted by key, so that errors are always reported in the same order.
    package func entries() throws -> [(name: String, node: ConfigurationNode)] {
        guard case .dictionary(let entries) = value else { throw mismatch("a dictionary") }
        return entries.sorted { $0.key < $1.key }.map { ($0.key, child($0.key, $0.value)) }
    }

    private func child(_ name: String, _ value: ConfigurationValue) -> ConfigurationNode {
        ConfigurationNode(value: value, place: Self.path(place, key: name), file: file)
    }

    /// Returns the place of a key's value in the dictionary at `place`.
    static func path(_ place: String, key: String) -> String {
        place.isEmpty ? shown(key) : "\(place).\(shown(key))"
    }

    /// Returns the place of an element of the list at `place`.
    static func path(_ place: String, index: Int) -> String { "\(place)[\(index)]" }

    /// Returns text as it may appear in a message: short, and on one line.
    package static func shown(_ text: String) -> String {
        let line = text.unicodeScalars.prefix(64).map { $0.properties.generalCategory == .control ? "?" : "\($0)" }
        return line.joined() + (text.unicodeScalars.count > 64 ? "…" : "")
    }
}
