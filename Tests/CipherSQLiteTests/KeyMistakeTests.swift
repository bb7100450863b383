import CipherErrors
internal import CipherSQLite
import Testing

/// The keys that are probably mistakes.
struct KeyMistakeTests {
    private static let digits = String(repeating: "0aF9", count: 16)
    private static let salted = digits + String(repeating: "5c", count: 16)

    private static let mistaken: [(text: String, mistake: KeyMistake)] = [
        (digits, .digits), (salted, .digits), ("0x\(digits)", .number), ("0X\(salted)", .number),
        ("x‘\(digits)’", .otherQuotes), ("X’\(digits)’", .otherQuotes), ("x\"\(digits)\"", .otherQuotes),
        ("\"x'\(digits)'\"", .otherQuotes), ("“x'\(salted)'”", .otherQuotes), ("'\(digits)'", .otherQuotes),
        ("`\(digits)`", .otherQuotes), ("x\(digits)", .otherQuotes), ("x´\(digits)´", .otherQuotes),
        ("a", .oneCharacter), ("é", .oneCharacter),
    ]

    @Test("A passphrase that was meant to be a raw key, or has one character, is a mistake", arguments: mistaken)
    func mistakes(_ given: (text: String, mistake: KeyMistake)) throws {
        let key = try CipherKey(text: SecretBytes(given.text.utf8))
        #expect(key.form == .passphrase)
        #expect(key.mistakes(CipherSettings()) == [given.mistake])
        for part in [given.text, Self.digits] where part.count > 1 {
            #expect(!key.mistakes(CipherSettings())[0].description.contains(part))
        }
    }

    @Test("Zero bytes are a mistake in a passphrase and in a raw key")
    func zeros() throws {
        let zeros = SecretBytes(repeatElement(0, count: 67))
        #expect(try CipherKey.passphrase(zeros).mistakes(CipherSettings()) == [.zeroPassphrase])
        let raw = SecretBytes(repeatElement(0, count: CipherKey.rawKeyLength))
        let salt = SecretBytes(repeatElement(7, count: CipherKey.saltLength))
        for key in [try CipherKey.raw(raw), try .raw(raw, salt: salt)] {
            #expect(key.mistakes(CipherSettings()) == [.zeroRawKey])
        }
    }

    @Test("Few rounds are a mistake with a passphrase, and mean nothing with a raw key")
    func rounds() throws {
        for (rounds, mistakes) in [(1, [KeyMistake.fewRounds]), (3_999, [.fewRounds]), (4_000, [])] {
            let settings = CipherSettings(kdfIterations: rounds)
            #expect(try CipherKey.passphrase("correct horse").mistakes(settings) == mistakes)
            #expect(try CipherKey.random().mistakes(settings).isEmpty)
        }
        let settings = CipherSettings(kdfIterations: 1)
        #expect(try CipherKey.passphrase("a").mistakes(settings) == [.oneCharacter, .fewRounds])
    }

    @Test(
        "An ordinary key is no mistake",
        arguments: [
            "x'\(digits)'", "x'\(salted)'", "ab", "éa", "correct horse", "0x12", "\"quoted\"",
            String(repeating: "a", count: 63), String(repeating: "g", count: 64), String(repeating: "“", count: 64),
        ])
    func ordinary(_ text: String) throws {
        #expect(try CipherKey(text: SecretBytes(text.utf8)).mistakes(CipherSettings()).isEmpty)
    }
}
