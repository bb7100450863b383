/// The values of a JSON text, parsed according to RFC 8259.
///
/// Foundation's reader is not used because it accepts a key that occurs twice, and reports no line.
struct JSONText {
    private var text: ConfigurationText

    /// Reads all values.
    static func value(of bytes: [UInt8]) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        var json = JSONText(text: try ConfigurationText(bytes, format: "JSON"))
        json.text.skipBlanks()
        let value = try json.value(at: "", depth: 0)
        json.text.skipBlanks()
        guard json.text.next == nil else {
            throw json.text.fault("there is extra text after the end of the value", at: "")
        }
        return value
    }

    private mutating func value(
        at path: String, depth: Int
    ) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        switch text.next {
        case UInt8(ascii: "{"):
            try text.count(at: path, depth: depth + 1)
            return try dictionary(at: path, depth: depth + 1)
        case UInt8(ascii: "["):
            try text.count(at: path, depth: depth + 1)
            return try list(at: path, depth: depth + 1)
        default:
            try text.count(at: path, depth: depth)
            return try scalar(at: path)
        }
    }

    private mutating func dictionary(
        at path: String, depth: Int
    ) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        var entries = ConfigurationEntries()
        text.skip()
        text.skipBlanks()
        guard !text.take("}") else { return .dictionary([:]) }
        repeat {
            text.skipBlanks()
            let start = text.position
            guard text.next == UInt8(ascii: "\"") else {
                throw text.fault(
                    text.isNext("}") ? "there is a comma before }" : "a key in double quotes is missing", at: path)
            }
            let key = try string(at: path)
            try entries.add(key, position: start, of: text, at: path)
            text.skipBlanks()
            guard text.take(":") else { throw text.fault("a colon is missing after the key", at: path) }
            text.skipBlanks()
            entries.set(key, try value(at: ConfigurationNode.path(path, key: key), depth: depth))
            text.skipBlanks()
        } while text.take(",")
        guard text.take("}") else { throw text.fault("a comma or } is missing", at: path) }
        return .dictionary(entries.values)
    }

    private mutating func list(at path: String, depth: Int) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        var elements: [ConfigurationValue] = []
        text.skip()
        text.skipBlanks()
        guard !text.take("]") else { return .list([]) }
        repeat {
            text.skipBlanks()
            guard !text.isNext("]") else { throw text.fault("there is a comma before ]", at: path) }
            elements.append(try value(at: ConfigurationNode.path(path, index: elements.count), depth: depth))
            text.skipBlanks()
        } while text.take(",")
        guard text.take("]") else { throw text.fault("a comma or ] is missing", at: path) }
        return .list(elements)
    }

    private mutating func scalar(at path: String) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        let start = text.position
        if text.next == UInt8(ascii: "\"") { return .text(try string(at: path)) }
        let bytes = text.take { byte in
            UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
                || [UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "_")].contains(byte)
        }
        let word = String(decoding: bytes, as: UTF8.self)
        switch word {
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        case "null": return .other
        case "": throw text.fault("a value is missing", at: path)
        default:
            guard word.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/) != nil else {
                throw text.fault("this value is not a number, string, true, false or null", at: path, position: start)
            }
            guard let number = ConfigurationValue(number: word) else {
                throw text.failure(.unfitNumber, at: path, position: start)
            }
            return number
        }
    }

    // MARK: Strings

    /// Reads a string; its opening quote is next.
    private mutating func string(at path: String) throws(ConfigurationSyntax.Failure) -> String {
        let start = text.position
        text.skip()
        var bytes: [UInt8] = []
        while true {
            bytes += text.take { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
            switch text.next {
            case UInt8(ascii: "\""):
                text.skip()
                return String(decoding: bytes, as: UTF8.self)
            case UInt8(ascii: "\\"):
                bytes += String(try escaped(at: path)).utf8
            case nil:
                throw text.fault("the string that begins here is not closed", at: path, position: start)
            default:
                throw text.fault(
                    "a string contains an unescaped line break, tab or other control character", at: path)
            }
        }
    }

    private static let escapes: [UInt8: Unicode.Scalar] = [
        UInt8(ascii: "\""): "\"", UInt8(ascii: "\\"): "\\", UInt8(ascii: "/"): "/", UInt8(ascii: "b"): "\u{8}",
        UInt8(ascii: "f"): "\u{C}", UInt8(ascii: "n"): "\n", UInt8(ascii: "r"): "\r", UInt8(ascii: "t"): "\t",
    ]

    private mutating func escaped(at path: String) throws(ConfigurationSyntax.Failure) -> Unicode.Scalar {
        let start = text.position
        if let first = codeUnit() {
            if let scalar = Unicode.Scalar(first) { return scalar }
            guard UTF16.isLeadSurrogate(first), let second = codeUnit(), UTF16.isTrailSurrogate(second) else {
                throw text.fault(
                    "a Unicode escape sequence contains only half of a surrogate pair", at: path, position: start)
            }
            return UTF16.decode(UTF16.EncodedScalar([first, second]))
        }
        text.skip()
        guard let byte = text.next, let scalar = Self.escapes[byte] else {
            throw text.fault("a string contains an invalid escape sequence", at: path, position: start)
        }
        text.skip()
        return scalar
    }

    /// Skips a backslash, `u` and four hexadecimal digits, and returns their value.
    private mutating func codeUnit() -> UInt16? {
        guard text.isNext("\\u") else { return nil }
        let digits = text.bytes[text.position...].dropFirst(2).prefix(4)
        guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
        text.skip(6)
        return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
