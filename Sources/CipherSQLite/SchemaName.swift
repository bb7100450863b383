internal import CCipherEngine
internal import CipherErrors

/// A name as the schema stores it: bytes, which need not be Unicode.
///
/// SQLite accepts any bytes as a name, and old apps wrote names in the encodings of their time. A `String` would
/// replace invalid bytes, and the result would be a different name.
package struct SchemaName: Hashable, Sendable {
    /// The bytes; in UTF-8 if the database has another encoding.
    package let bytes: [UInt8]

    package init(bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
    }

    /// The bytes with ASCII letters in lower case, by which SQLite compares names.
    package var folded: [UInt8] { bytes.map { $0 >= 0x41 && $0 <= 0x5a ? $0 | 0x20 : $0 } }

    /// The name as text; if it is not valid UTF-8, the result is a different name.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Whether the name is valid UTF-8.
    package var isUnicode: Bool { String(utf8: bytes) != nil }

    /// The name in backticks, with inner backticks doubled.
    ///
    /// In this form, SQLite always treats it as a name, and never as a string.
    ///
    /// Source: SQLite, "SQLite Keywords".
    var quoted: [UInt8] {
        let quote = UInt8(ascii: "`")
        var result = [quote]
        result.reserveCapacity(bytes.count + 2)
        for byte in bytes {
            if byte == quote { result.append(quote) }
            result.append(byte)
        }
        result.append(quote)
        return result
    }

    /// Lends the name as a C string.
    func withCString<Result>(_ body: (UnsafePointer<CChar>?) throws -> Result) rethrows -> Result {
        try (bytes + [0]).withUnsafeBufferPointer { bytes in
            try bytes.withMemoryRebound(to: CChar.self) { try body($0.baseAddress) }
        }
    }
}

extension SchemaName: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    package init(stringLiteral text: String) {
        self.init(bytes: text.utf8)
    }
}

extension SchemaName: CustomStringConvertible {
    /// The name for messages, with bytes that are not UTF-8 and terminal control characters in the form `\\xff`.
    package var description: String {
        var text = ""
        var rest = bytes[...]
        while let byte = rest.first {
            let length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
            if byte >= 0x20, byte != 0x7f, let character = String(utf8: rest.prefix(length)) {
                text += character
                rest = rest.dropFirst(length)
            } else {
                let digits = String(byte, radix: 16)
                text += "\\x" + (digits.count == 1 ? "0" : "") + digits
                rest = rest.dropFirst()
            }
        }
        return text
    }
}

extension SchemaName: ColumnReadable {
    /// Reads the exact bytes of a TEXT column.
    package static func read(from row: borrowing Row, at index: Int) throws -> SchemaName {
        guard let bytes = row.textBytes(at: index) else { throw row.mismatch(at: index, wanted: SchemaName.self) }
        return SchemaName(bytes: bytes)
    }
}
