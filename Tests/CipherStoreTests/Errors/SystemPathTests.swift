internal import CipherErrors
import Testing

/// The conversion of file names to text and back.
@Suite struct SystemPathTests {
    private static func isExact(_ name: [UInt8]) -> Bool { SystemPath.bytes(SystemPath.text(name)) == name }

    @Test("Every name of up to two bytes is converted to text and back, and no two have the same text")
    func shortNames() {
        let bytes = Array(UInt8.min...UInt8.max)
        let names = [[]] + bytes.map { [$0] } + bytes.flatMap { first in bytes.map { [first, $0] } }
        #expect(names.allSatisfy(Self.isExact))
        #expect(Set(names.map { Array(SystemPath.text($0).utf8) }).count == names.count)
    }

    @Test("Names of random bytes, invalid UTF-8 and private characters are converted to text and back")
    func randomNames() {
        var random = SystemRandomNumberGenerator()
        let pieces: [[UInt8]] = [
            Array("é/你.db".utf8), Array("\u{10FFFF}\u{10FF80}\u{10FF7F}\u{FFFD}".utf8), [0xf4, 0x8f, 0xbe],
            [0xc0, 0x80],
            [0xed, 0xa0, 0x80], [0xf5, 0x80], [0xe2, 0x82],
        ]
        for _ in 0..<20_000 {
            var name = (0..<Int.random(in: 0...4)).flatMap { _ in pieces.randomElement(using: &random) ?? [] }
            name += (0..<Int.random(in: 0...5)).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            guard Self.isExact(name) else {
                Issue.record("\(name) is not given back")
                return
            }
        }
    }

    @Test("Valid UTF-8 stays unchanged, and every other byte becomes one scalar")
    func forms() {
        #expect(SystemPath.text("a/é\u{10FF7F}\u{FFFD}".utf8) == "a/é\u{10FF7F}\u{FFFD}")
        #expect(SystemPath.text([0x78, 0xff]) == "x\u{10FFFF}")
        #expect(SystemPath.text("\u{10FFFF}".utf8) == "\u{10FFF4}\u{10FF8F}\u{10FFBF}\u{10FFBF}")
    }

    @Test("Bytes that are not UTF-8 are shown as escapes, and no name controls the terminal")
    func printable() {
        #expect(
            SystemPath.printable(SystemPath.text([0x78, 0xff, 0x0a, 0x1b, 0x2f, 0x80])) == "x\\xff\\n\\u{1b}/\\x80")
        #expect(SystemPath.printable("é\u{FFFD}") == "é\u{FFFD}")
        #expect(SystemPath.printable(json: "{\"path\":\"x\u{10FFFF}\"}") == #"{"path":"x\\xff"}"#)
        let error = DatabaseError(extendedCode: 1, message: "no", path: SystemPath.text([0x78, 0xff]))
        #expect(error.description == "no (SQLite code 1) in x\\xff")
    }

    @Test("Names are compared byte by byte")
    func equality() {
        #expect("\u{e9}" == "e\u{301}")
        #expect(!"\u{e9}".isSameName(as: "e\u{301}"))
    }
}
