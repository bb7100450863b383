internal import CipherPlatform

/// Converts file names to text and back without loss; to the system, names are bytes, which need not be UTF-8.
///
/// A byte that is not part of valid UTF-8 becomes the scalar U+10FF00 plus the byte, and so does each byte of a genuine
/// U+10FF80 to U+10FFFF. Different names always have different texts, and a name's bytes can be recovered from its
/// text. Source: Python, PEP 383, which does the same with surrogates; a Swift String cannot hold surrogates.
///
/// Names must be compared by their UTF-8: `==` considers "é" as one scalar and "é" as two scalars equal.
package enum SystemPath {
    private static let base: UInt32 = 0x10FF00
    private static let escapes: ClosedRange<UInt32> = base + 0x80...base + 0xff

    /// Returns the text of a name.
    package static func text(_ name: some Sequence<UInt8>) -> String {
        let bytes = Array(name)
        var result = String.UnicodeScalarView()
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        var position = 0
        func append(escaped range: Range<Int>) {
            result += bytes[range].compactMap { Unicode.Scalar(base + UInt32($0)) }
        }
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                let end = position + encoded.count
                if escapes.contains(scalar.value) { append(escaped: position..<end) } else { result.append(scalar) }
                position = end
            case .error(let length):
                append(escaped: position..<position + length)
                position += length
            case .emptyInput:
                return String(result)
            }
        }
    }

    /// Returns the text of a NUL-terminated name.
    package static func text(cString name: UnsafePointer<CChar>) -> String {
        text(UnsafeRawBufferPointer(start: name, count: strlen(name)))
    }

    /// Returns the bytes of a name.
    package static func bytes(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if let byte = byte(scalar) { result.append(byte) } else { result += String(scalar).utf8 }
        }
        return result
    }

    /// Returns text for people to read: bytes that are not UTF-8 appear as `\xff`, and control characters that a
    /// terminal would act on appear as other escapes.
    package static func printable(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            if let byte = byte(scalar) {
                result += "\\x\(String(byte, radix: 16))"
            } else if let escape = escape(scalar) {
                result += escape
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Returns JSON text in which such bytes appear as in ``printable(_:)``, and control characters that a terminal
    /// would act on appear as JSON escapes.
    package static func printable(json: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in json.unicodeScalars {
            if let byte = byte(scalar) {
                result += #"\\x"#.unicodeScalars
                result += String(byte, radix: 16).unicodeScalars
            } else if scalar != "\n", let escape = jsonEscape(scalar) {
                result += escape.unicodeScalars
            } else {
                result.append(scalar)
            }
        }
        return String(result)
    }

    /// Returns the JSON escape of a scalar that ``escape(_:)`` escapes; `nil` for any other.
    package static func jsonEscape(_ scalar: Unicode.Scalar) -> String? {
        guard escape(scalar) != nil else { return nil }
        switch scalar {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default:
            let digits = String(scalar.value, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// Returns the escape of a control character, a line separator or a bidirectional control; `nil` for any other
    /// scalar.
    package static func escape(_ scalar: Unicode.Scalar) -> String? {
        switch scalar {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default: break
        }
        return switch scalar.value {
        case 0..<0x20, 0x7f..<0xa0,
            // Line and paragraph separators; bidirectional embeddings, overrides and isolates.
            0x2028...0x202e, 0x2066...0x2069:
            "\\u{\(String(scalar.value, radix: 16))}"
        default: nil
        }
    }

    private static func byte(_ scalar: Unicode.Scalar) -> UInt8? {
        escapes.contains(scalar.value) ? UInt8(truncatingIfNeeded: scalar.value) : nil
    }
}

extension String {
    /// Passes the bytes of a name to a system call, and preserves the call's `errno`.
    package func withSystemPath<Result, Failure: Error>(
        _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = SystemPath.bytes(self)
        let name = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
        for (index, byte) in bytes.enumerated() { name[index] = CChar(bitPattern: byte) }
        name[bytes.count] = 0
        defer {
            let reason = errno
            name.deallocate()
            errno = reason
        }
        return try body(name)
    }

    /// Whether two texts are the same name.
    package func isSameName(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
