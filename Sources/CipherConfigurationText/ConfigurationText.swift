internal import CipherErrors

/// A place in a text file: its line and its column in Unicode scalars, both counted from 1.
package struct TextPlace: Equatable {
    let line: Int
    let column: Int
}

extension TextPlace: CustomStringConvertible {
    package var description: String { "line \(line), column \(column)" }
}

/// The text of a configuration, which is read from beginning to end.
struct ConfigurationText {
    /// The name of the format, for errors.
    let format: String
    let bytes: [UInt8]
    /// The position of the next byte.
    private(set) var position = 0
    private var budget = ConfigurationValue.maximumCount

    /// Creates a text.
    ///
    /// - Parameter bytes: The bytes of the file without its byte order mark.
    /// - Throws: `notUTF8` with the first place that is not UTF-8.
    init(_ bytes: [UInt8], format: String) throws(ConfigurationSyntax.Failure) {
        self.format = format
        self.bytes = bytes
        guard String(utf8: bytes) == nil else { return }
        // Decoding replaces invalid bytes with U+FFFD, so the first difference is the first fault.
        let repaired = String(decoding: bytes, as: UTF8.self).utf8
        let fault = zip(bytes, repaired).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? bytes.count
        throw ConfigurationSyntax.Failure(.notUTF8, place: place(of: fault))
    }

    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Returns whether the remaining text begins with `literal`.
    func isNext(_ literal: String) -> Bool { bytes[position...].starts(with: literal.utf8) }

    mutating func skip(_ count: Int = 1) { position += count }

    /// Skips `literal` if the remaining text begins with it, and returns whether it does.
    mutating func take(_ literal: String) -> Bool {
        guard isNext(literal) else { return false }
        position += literal.utf8.count
        return true
    }

    /// Skips all bytes up to the first byte that does not fit, and returns the skipped bytes.
    mutating func take(while fits: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while position < bytes.count, fits(bytes[position]) { position += 1 }
        return bytes[start..<position]
    }

    /// Skips everything up to the end of the first `literal`, and returns the bytes before it; `nil` if there is no
    /// `literal`.
    mutating func take(through literal: String) -> ArraySlice<UInt8>? {
        let start = position
        while position < bytes.count {
            let end = position
            if take(literal) { return bytes[start..<end] }
            position += 1
        }
        position = start
        return nil
    }

    mutating func skipBlanks() { _ = take { [0x20, 0x09, 0x0A, 0x0D].contains($0) } }

    /// Counts a value, and checks the depth of its nesting.
    mutating func count(at path: String, depth: Int) throws(ConfigurationSyntax.Failure) {
        budget -= 1
        guard budget >= 0 else { throw failure(.tooManyValues, at: path) }
        guard depth <= ConfigurationValue.maximumDepth else { throw failure(.tooDeep, at: path) }
    }

    /// Returns the place of a byte; LF, CR LF and CR each end a line.
    func place(of position: Int) -> TextPlace {
        var line = 1
        var start = 0
        for index in 0..<position {
            let isEnd =
                bytes[index] == 0x0A || bytes[index] == 0x0D && (index + 1 == bytes.count || bytes[index + 1] != 0x0A)
            guard isEnd else { continue }
            line += 1
            start = index + 1
        }
        return TextPlace(line: line, column: bytes[start..<position].count { $0 & 0xC0 != 0x80 } + 1)
    }

    func failure(
        _ reason: ConfigurationSyntax.Failure.Reason, at path: String, position: Int? = nil
    ) -> ConfigurationSyntax.Failure {
        ConfigurationSyntax.Failure(reason, keyPath: path, place: place(of: position ?? self.position))
    }

    /// Returns the failure for a syntax error.
    func fault(_ what: String, at path: String, position: Int? = nil) -> ConfigurationSyntax.Failure {
        failure(.malformed(format, what), at: path, position: position)
    }
}

/// The entries of one dictionary, each key with its place.
struct ConfigurationEntries {
    private(set) var values: [String: ConfigurationValue] = [:]
    private var positions: [String: Int] = [:]

    /// Adds a key, and throws if it already exists.
    mutating func add(
        _ key: String, position: Int, of text: ConfigurationText, at path: String
    ) throws(ConfigurationSyntax.Failure) {
        if let first = positions.updateValue(position, forKey: key) {
            throw text.failure(.repeatedKey(key, first: text.place(of: first)), at: path, position: position)
        }
    }

    mutating func set(_ key: String, _ value: ConfigurationValue) { values[key] = value }
}
