internal import CipherErrors
import Testing

/// The creation of text from bytes that may be invalid.
@Suite struct ValidTextTests {
    @Test(
        "Valid UTF-8 becomes text of exactly the same bytes, with its NULs, byte order marks and decomposed letters",
        arguments: [
            "", "a", "a\0b\0", "\u{FEFF}a\u{FEFF}", "\u{FFFD}", "e\u{301}é", "\u{D7FF}\u{E000}", "\u{10000}\u{10FFFF}",
        ])
    func valid(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(String(utf8: bytes).map { Array($0.utf8) } == bytes)
        #expect(String(utf8: (bytes + [0xff]).dropLast()).map { Array($0.utf8) } == bytes)
    }

    @Test(
        "Bytes that are not valid UTF-8 become no text, wherever they are in valid text",
        arguments: [
            [0x80], [0xbf], [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x9f, 0xbf], [0xf0, 0x8f, 0xbf, 0xbf],
            [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xfe], [0xff],
            [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x98], [0xef, 0xbf], [0xc3, 0xc3, 0xa9],
        ] as [[UInt8]])
    func invalid(_ bytes: [UInt8]) {
        for text in ["", "a", "é", "\u{FFFD}"] {
            #expect(String(utf8: text.utf8 + bytes) == nil)
            #expect(String(utf8: bytes + text.utf8) == nil)
        }
    }
}
