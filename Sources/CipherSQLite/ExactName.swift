/// A name that is compared by byte, as SQLite compares names.
///
/// A `String` is equal to any other that is canonically equivalent, such as é as one scalar and as two, which for SQLite
/// names something else.
struct ExactName: Hashable {
    let text: String
    private let isASCII: Bool

    init(_ text: String) {
        self.text = text
        isASCII = text.utf8.allSatisfy { $0 < 0x80 }
    }

    static func == (left: Self, right: Self) -> Bool { left.isSpelled(right.text) }

    func isSpelled(_ other: String) -> Bool {
        // Any text that is only equivalent to ASCII has more bytes.
        text == other && (isASCII ? text.utf8.count == other.utf8.count : text.utf8.elementsEqual(other.utf8))
    }

    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
