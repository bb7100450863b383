internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Keys that are not interpreted as they were meant, in every format.
struct KeyDiagnosisTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The key that SQLCipher got.
        let stored: [UInt8]
        /// The key that the diagnosis gets.
        let given: [UInt8]
        let kinds: Set<Diagnosis.Kind>

        init(_ description: String, _ stored: [UInt8], _ given: [UInt8], _ kinds: Set<Diagnosis.Kind>) {
            testDescription = description
            (self.stored, self.given, self.kinds) = (stored, given, kinds)
        }

        init(_ description: String, _ stored: String, _ given: String, _ kinds: Set<Diagnosis.Kind>) {
            self.init(description, Array(stored.utf8), Array(given.utf8), kinds)
        }
    }

    private static let word = PlantedFile.passphrase
    private static let long = String(repeating: PlantedFile.passphrase, count: 5)
    private static let digits = PlantedFile.digits
    private static let raw = "x'\(digits)'"
    private static let salt = "00112233445566778899aabbccddeeff"
    private static let bytes = stride(from: 0, to: 64, by: 2).map { offset in
        let start = digits.index(digits.startIndex, offsetBy: offset)
        return UInt8(digits[start..<digits.index(start, offsetBy: 2)], radix: 16) ?? 0
    }
    private static let accented = "Grüße an alle"

    private static func utf16(_ text: String, bigEndian: Bool = false, mark: Bool = false) -> [UInt8] {
        ((mark ? [0xfeff] : []) + Array(text.utf16)).flatMap { unit in
            let (high, low) = (UInt8(unit >> 8), UInt8(truncatingIfNeeded: unit))
            return bigEndian ? [high, low] : [low, high]
        }
    }

    static let cases: [Case] = [
        Case("the key fits, with the newline of the file", word, word + "\n", []),
        Case("a newline that was hashed", word + "\n", word, [.newline]),
        Case("a newline that was hashed, and is there", word + "\n", word + "\n", [.newline]),
        Case("a carriage return and a newline that were hashed", word + "\r\n", word, [.newline]),
        Case("two newlines in the file", word, word + "\n\n", [.newline]),
        Case("a NUL that was hashed, which makes no other key", word + "\0", word, []),
        Case("a NUL that was hashed behind more than a block", long + "\0", long, [.nul]),
        Case("a NUL in the file, with which the text is no key", word, word + "\0", [.nul]),
        Case("a NUL in the file behind more than a block", long, long + "\0", [.nul]),
        Case("a NUL and more in the file", word, word + "\0garbage", [.nul]),
        Case("a space in the file", word, word + " \n", [.whitespace]),
        Case("a space before it in the file", word, " " + word, [.whitespace]),
        Case("a space that was hashed", word + " ", word, [.whitespace]),
        Case("quotes in the file", word, "\"\(word)\"\n", [.quotes]),
        Case("single quotes in the file", word, "'\(word)'", [.quotes]),
        Case("quotes that were hashed", "'\(word)'", word, [.quotes]),
        Case("a byte order mark in the file", word, "\u{feff}" + word, [.byteOrderMark]),
        Case("a byte order mark that was hashed", "\u{feff}" + word, word, [.byteOrderMark]),
        Case("UTF-16 in the file", Array(word.utf8), utf16(word, mark: true), [.textEncoding]),
        Case("UTF-16 without a mark in the file", Array(word.utf8), utf16(word), [.textEncoding]),
        Case(
            "UTF-16 of the other order in the file", Array(word.utf8), utf16(word, bigEndian: true, mark: true),
            [.textEncoding]),
        Case("UTF-16 that was hashed", utf16(word), Array(word.utf8), [.textEncoding]),
        Case(
            "UTF-16 of the other order that was hashed", utf16(word, bigEndian: true), Array(word.utf8), [.textEncoding]
        ),
        Case(
            "Latin-1 that was hashed", Array(accented.unicodeScalars.map { UInt8($0.value) }), Array(accented.utf8),
            [.textEncoding]),
        Case(
            "Latin-1 in the file", Array(accented.utf8), Array(accented.unicodeScalars.map { UInt8($0.value) }),
            [.textEncoding]),
        Case(
            "Java's modified UTF-8 that was hashed", Array("key".utf8) + [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
            Array("key\u{1f600}".utf8), [.textEncoding]),
        Case("the raw key fits", raw, raw, []),
        Case("a raw key in another case is the same", raw, raw.uppercased().replacing("X'", with: "x'"), []),
        Case("a raw key without x''", raw, digits, [.rawKeyNotPassphrase]),
        Case("a raw key without x'', with a newline", raw, digits + "\n", [.rawKeyNotPassphrase]),
        Case("a raw key with 0x", raw, "0x" + digits, [.rawKeyNotPassphrase]),
        Case("a raw key in other quotes", raw, "x\"\(digits)\"", [.rawKeyNotPassphrase]),
        Case("a raw key behind a mark", raw, "\u{feff}" + raw, [.byteOrderMark]),
        Case("the bytes of a raw key", Array(raw.utf8), bytes, [.rawKeyNotPassphrase]),
        Case("the bytes of a raw key and a newline", Array(raw.utf8), bytes + [10], [.rawKeyNotPassphrase]),
        Case(
            "a raw key in base64", Array(raw.utf8), Array(Data(bytes).base64EncodedString().utf8),
            [.rawKeyNotPassphrase, .encodedKey]),
        Case("a passphrase of digits", digits, raw, [.passphraseNotRawKey]),
        Case("a passphrase of digits and a newline", digits + "\n", raw, [.passphraseNotRawKey, .newline]),
        Case("a passphrase of digits in lower case", digits.lowercased(), digits, [.hexCase]),
        Case("a passphrase of digits in upper case", digits.uppercased(), digits, [.hexCase]),
        Case("digits in another case, in x''", digits.lowercased(), raw, [.passphraseNotRawKey, .hexCase]),
        Case("a raw key whose newline made it a passphrase", raw + "\n", raw + "\n", [.passphraseNotRawKey, .newline]),
        Case("a raw key whose NUL made it a passphrase", raw + "\0", raw, [.passphraseNotRawKey, .nul]),
        Case("x'' with too few digits", "x'5ec2e7'", "x'5ec2e7'", [.passphraseNotRawKey]),
        Case(
            "a passphrase in base64", Array(Data(bytes).base64EncodedString().utf8), Array(raw.utf8),
            [.passphraseNotRawKey, .encodedKey]),
        Case("PRAGMA hexkey", bytes, Array(digits.utf8), [.encodedKey]),
        Case("key and salt", "x'\(digits)\(salt)'", "x'\(digits)\(salt)'", []),
        Case("key and salt without x''", "x'\(digits)\(salt)'", digits + salt, [.rawKeyNotPassphrase]),
        Case("the key without the salt that the file holds", "x'\(digits)\(salt)'", raw, []),
        Case("the salt of another file", raw, "x'\(digits)\(salt)'", [.keySalt]),
        Case("another key", word, "another", [.undetermined]),
        Case("another raw key", raw, "x'\(String(repeating: "0f", count: 32))'", [.undetermined]),
    ]

    @Test("The intended form of the key is diagnosed, in every format", arguments: cases, [4, 3, 2, 1])
    func names(test: Case, compatibility: Int) throws {
        guard compatibility <= Engine.current.defaultCompatibility else { return }
        // Few rounds make the test fast.
        let settings = CipherSettings(compatibility: compatibility, kdfIterations: 1_000)
        let isUnknown = test.kinds.contains(.undetermined)
        let diagnosis = try PlantedFile(test.stored, settings)
            .diagnose(test.given, settings, rounds: 100, derivations: isUnknown ? 40 : 1_000)
        // Without HMACs, the salt has no meaning for a raw key.
        let kinds = compatibility == 1 ? test.kinds.subtracting([.keySalt]) : test.kinds
        #expect(diagnosis.kinds == kinds, "\(diagnosis.causes)")
        #expect(diagnosis.format == (isUnknown ? nil : settings))
        #expect(diagnosis.isComplete != isUnknown)
    }

    @Test(
        "The intended form of the key is diagnosed together with a format that was not specified",
        arguments: cases.filter {
            [[.newline], [.hexCase], [.rawKeyNotPassphrase], [.byteOrderMark]].contains($0.kinds)
        },
        [3, 2, 1])
    func namesBoth(test: Case, compatibility: Int) throws {
        guard compatibility < Engine.current.defaultCompatibility else { return }
        let file = try PlantedFile(test.stored, CipherSettings(compatibility: compatibility))
        let diagnosis = try file.diagnose(test.given)
        // A raw key is not derived, so formats 2 and 3 are the same.
        let isSame = diagnosis.keyForm != .passphrase && compatibility == 2 && CipherSettings().compatibility == 3
        let format1: Set<Diagnosis.Kind> = compatibility == 1 ? [.noHMAC] : []
        #expect(
            diagnosis.kinds == test.kinds.union(isSame ? [] : [.cipherFormat]).union(format1), "\(diagnosis.causes)")
        let format = try #require(diagnosis.format)
        #expect(format.compatibility == compatibility || [2, 3].contains(compatibility))
    }
}
