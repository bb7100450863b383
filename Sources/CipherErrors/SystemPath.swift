#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Names of files as text, without loss: to the system they are bytes, which need not be UTF-8.
///
/// A byte that is no part of valid UTF-8 stands as the scalar U+10FF00 plus the byte, and so does each byte of a genuine
/// U+10FF80 to U+10FFFF. Two different names never have one text, and the text of a name gives its bytes again.
/// Source: Python, PEP 383, which does the same with surrogates; a Swift String holds none.
///
/// Two names are one only where their UTF-8 is equal: `==` takes "é" in one and in two scalars for one text.
package enum SystemPath {
    private static let base: UInt32 = 0x10FF00
    private static let escapes: ClosedRange<UInt32> = base + 0x80...base + 0xff

    /// The text of a name.
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

    /// The text of a name that C gave, up to its NUL.
    package static func text(cString name: UnsafePointer<CChar>) -> String {
        text(UnsafeRawBufferPointer(start: name, count: strlen(name)))
    }

    /// The bytes of a name.
    package static func bytes(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if let byte = byte(scalar) { result.append(byte) } else { result += String(scalar).utf8 }
        }
        return result
    }

    /// Text for people: bytes that are not UTF-8 as `\xff`, and what a terminal would act upon as other escapes.
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

    /// A JSON text whose strings show such bytes as ``printable(_:)`` does, and have what a terminal would act upon as
    /// escapes of JSON.
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

    /// The escape of JSON for a scalar that ``escape(_:)`` knows; `nil` for any other.
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

    /// What stands for a control character, a line end or a change of direction; `nil` for any other scalar.
    package static func escape(_ scalar: Unicode.Scalar) -> String? {
        switch scalar {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default: break
        }
        return switch scalar.value {
        case 0..<0x20, 0x7f..<0xa0,
            // Line and paragraph separators; embeddings, overrides and isolates of direction.
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
    /// Lends the bytes of a name to a call of the system's, and leaves the call's `errno` as it is.
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

    /// Whether two texts are one name.
    package func isSameName(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
