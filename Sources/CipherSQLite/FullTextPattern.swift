/// A pattern for MATCH that is created from a user's text, whatever the text contains.
///
/// ```swift
/// guard let pattern = FullTextPattern(allOf: text, completesLast: true) else { return [] }
/// return try db.rows(Note.self, "SELECT note.* FROM note JOIN search ON search.rowid = note.id WHERE search MATCH
/// \(pattern)")
/// ```
///
/// Words are sequences of letters, digits and marks; everything else only separates them. Words are put in lower case,
/// so that none is an operator. The pattern works with FTS5, FTS4 and FTS3.
///
/// Source: SQLite, "SQLite FTS5 Extension", section 3, and "SQLite FTS3 and FTS4 Extensions", section 3.
public struct FullTextPattern: Sendable, Equatable, Bindable {
    private let text: String

    /// Creates a pattern that finds all of the words, in any order; returns `nil` if there is no word.
    ///
    /// - Parameter completesLast: Whether the last word may be the beginning of a longer word, as while a user types.
    public init?(allOf text: String, completesLast: Bool = false) {
        self.init(text, separator: " ", completesLast)
    }

    /// Creates a pattern that finds at least one of the words; returns `nil` if there is no word.
    ///
    /// - Parameter completesLast: Whether the last word may be the beginning of a longer word, as while a user types.
    public init?(anyOf text: String, completesLast: Bool = false) {
        self.init(text, separator: " OR ", completesLast)
    }

    private init?(_ text: String, separator: String, _ completesLast: Bool) {
        let words = text.unicodeScalars.split { !Self.isOfWord($0) }.map { word in
            String(
                String.UnicodeScalarView(
                    word.map { 0x41...0x5a ~= $0.value ? Unicode.Scalar(UInt8($0.value | 0x20)) : $0 }))
        }
        guard !words.isEmpty else { return nil }
        self.text = words.joined(separator: separator) + (completesLast ? "*" : "")
    }

    private static func isOfWord(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .decimalNumber,
            .letterNumber, .otherNumber, .nonspacingMark, .spacingMark, .enclosingMark:
            true
        default: false
        }
    }

    /// The pattern, as text.
    public var databaseValue: Value { .text(text) }
}
