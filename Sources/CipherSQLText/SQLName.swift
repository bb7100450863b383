package import CipherSQLite

/// A name, compared as SQLite compares names: byte by byte, ignoring the case of ASCII letters.
///
/// `String` compares by canonical equivalence, by which an `é` of one scalar equals an `é` of two; to SQLite, these are
/// two tables.
package struct SQLName: Hashable, Sendable {
    /// The bytes of the name, with ASCII letters in lower case.
    package let folded: [UInt8]

    package init(_ text: String) {
        folded = Self.fold(text)
    }

    package init(of name: SchemaName) {
        folded = name.folded
    }

    /// The name with ASCII letters in lower case.
    package var text: String { String(decoding: folded, as: UTF8.self) }

    /// Returns whether the name begins with `prefix`.
    package func hasPrefix(_ prefix: String) -> Bool {
        folded.starts(with: Self.fold(prefix))
    }

    /// Whether the name is reserved for SQLite.
    package var isOfSQLite: Bool { hasPrefix("sqlite_") }

    /// Whether the name is reserved for this library.
    package var isOfCipherStore: Bool { hasPrefix("cipherstore_") }

    /// Returns whether SQL text contains this name as a whole word.
    ///
    /// If in doubt, the result is `true`, for example for a name inside a string.
    package func isMentioned(in sql: String) -> Bool {
        // Inside quotes, the same quotes are doubled.
        let quotes = [UInt8(ascii: "\""), UInt8(ascii: "`"), UInt8(ascii: "'")].filter(folded.contains)
        return Self.contains(folded, in: sql)
            || quotes.contains { quote in
                Self.contains(folded.flatMap { $0 == quote ? [$0, $0] : [$0] }, in: sql)
            }
    }

    private static func contains(_ folded: [UInt8], in sql: String) -> Bool {
        // The search uses pointers and copies nothing, because every name may be searched for in every text of a large
        // schema.
        sql.withBytes { text in
            folded.withUnsafeBufferPointer { name in
                guard !name.isEmpty, text.count >= name.count else { return false }
                for start in 0...(text.count - name.count) {
                    var length = 0
                    while length < name.count, Self.fold(text[start + length]) == name[length] { length += 1 }
                    guard length == name.count else { continue }
                    let end = start + length
                    let isAfterMark = text[..<start].suffix(3).elementsEqual([0xef, 0xbb, 0xbf])
                    if (start == 0 || isAfterMark || !Self.isPartOfWord(Self.fold(text[start - 1])))
                        && (end == text.count || !Self.isPartOfWord(Self.fold(text[end])))
                    {
                        return true
                    }
                }
                return false
            }
        }
    }

    private static func fold(_ text: String) -> [UInt8] {
        var bytes = Array(text.utf8)
        bytes.withUnsafeMutableBufferPointer { bytes in
            for place in 0..<bytes.count { bytes[place] = fold(bytes[place]) }
        }
        return bytes
    }

    /// Returns a byte with A to Z converted to a to z.
    private static func fold(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte }

    /// Returns whether a folded byte belongs to a word.
    ///
    /// Source: SQLite's tokenizer, where every byte from 0x80 on belongs to a name.
    static func isPartOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"),
            UInt8(ascii: "$"), 0x80...:
            true
        default: false
        }
    }
}

extension SQLName: Comparable {
    /// Compares by bytes.
    package static func < (left: SQLName, right: SQLName) -> Bool {
        left.folded.lexicographicallyPrecedes(right.folded)
    }
}
