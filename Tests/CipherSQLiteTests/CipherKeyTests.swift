internal import CipherErrors
internal import CipherSQLite
import Foundation
import Testing

struct CipherKeyTests {
    private let fixture: EngineFixture

    init() throws {
        fixture = try EngineFixture()
    }

    /// The formats that the running engine writes.
    private static let formats = Engine.current.cipherMajor >= 4 ? [3, 4] : [3]
    private static let raw = SecretBytes((0..<32).map { UInt8($0) })

    private func write(_ key: CipherKey, _ settings: CipherSettings) throws {
        let db = try fixture.open(key, settings)
        defer { db.close() }
        try db.executeScript("CREATE TABLE t(v); INSERT INTO t VALUES ('secret text')")
    }

    private func read(_ key: CipherKey, _ settings: CipherSettings) throws -> String? {
        let db = try fixture.open(key, settings)
        defer { db.close() }
        return try db.value(String.self, "SELECT v FROM t")
    }

    @Test(
        "A key derived by CipherStore is the one that SQLCipher derives", arguments: formats,
        ["pass", "p", "with 'quotes' and \u{e9}", "a\0b"])
    func derivation(format: Int, passphrase: String) throws {
        let settings = CipherSettings(compatibility: format)
        let key = try CipherKey.passphrase(passphrase)
        try write(key, settings)
        let salt = SecretBytes(try fixture.bytes().prefix(CipherKey.saltLength))
        let derived = try key.rawKey(salt: salt, settings: settings)
        #expect(derived.form == .rawWithSalt)
        #expect(derived.salt == salt)
        #expect(try read(derived, settings) == "secret text")
        // Also without the salt, because the file contains it.
        let digits = derived.text.withUnsafeBytes { Array($0[2..<66]) }
        let alone = try CipherKey(text: SecretBytes(Array("x'".utf8) + digits + Array("'".utf8)))
        #expect(try read(alone, settings) == "secret text")
        #expect(try read(key, settings) == "secret text")
    }

    @Test("A key of raw bytes opens its file with and without the salt", arguments: formats)
    func rawKey(format: Int) throws {
        let settings = CipherSettings(compatibility: format)
        let key = try CipherKey.raw(Self.raw)
        try write(key, settings)
        let salt = SecretBytes(try fixture.bytes().prefix(CipherKey.saltLength))
        #expect(try read(key.rawKey(salt: salt, settings: settings), settings) == "secret text")
        #expect(try read(CipherKey.raw(Self.raw, salt: salt), settings) == "secret text")
    }

    @Test("A raw key or salt of the wrong length is refused with its number of bytes", arguments: [0, 5, 31, 33])
    func otherLength(count: Int) throws {
        let bytes = SecretBytes(repeatElement(7, count: count))
        for key in [{ try CipherKey.raw(bytes) }, { try CipherKey.raw(Self.raw, salt: bytes) }] {
            let error = try #require(#expect(throws: KeyError.self) { _ = try key() })
            #expect(error.description.contains("\(count) bytes"))
            #expect(!error.description.contains("begins with"))
        }
    }

    @Test("A key that contains a salt writes this salt into a new file", arguments: formats)
    func ownSalt(format: Int) throws {
        let salt = SecretBytes(repeatElement(9, count: CipherKey.saltLength))
        try write(.raw(Self.raw, salt: salt), CipherSettings(compatibility: format))
        #expect(try fixture.bytes().prefix(CipherKey.saltLength) == Data(repeating: 9, count: CipherKey.saltLength))
    }

    @Test("A wrong key or a wrong format does not open a file, and the error says so")
    func wrongKey() throws {
        let settings = CipherSettings()
        try write(.passphrase("right"), settings)
        #expect(try !fixture.bytes().contains(Data("secret text".utf8)))
        for key in [try CipherKey.passphrase("wrong"), try .passphrase("right "), try .raw(Self.raw)] {
            let error = try databaseError { try read(key, settings) }
            #expect(error.isNotADatabase)
        }
        let other = CipherSettings(compatibility: settings.compatibility == 4 ? 3 : 2)
        #expect(try databaseError { try read(.passphrase("right"), other) }.isNotADatabase)
        #expect(try databaseError { try fixture.open().proveReadable() }.isNotADatabase)
        #expect(try read(.passphrase("right"), settings) == "secret text")
    }

    @Test("The form of a key is recognized from its text")
    func forms() throws {
        let digits = String(repeating: "0aF9", count: 24)
        let cases: [(text: String, form: CipherKey.Form)] = [
            ("pass", .passphrase), ("pass\n", .passphrase), ("pass\r\n", .passphrase), ("\u{e9}", .passphrase),
            ("x'\(digits.prefix(64))'", .raw), ("X'\(digits.prefix(64))'\n", .raw), ("x'\(digits)'", .rawWithSalt),
        ]
        for (text, form) in cases {
            let key = try CipherKey(text: SecretBytes(Array(text.utf8)))
            #expect(key.form == form)
            #expect(key.description == "CipherKey(\(form))")
        }
    }

    @Test("Text that may be a database or another file is not a key, and a passphrase of the same bytes is")
    func otherContent() throws {
        let random = (0..<512).map { UInt8(truncatingIfNeeded: $0 % 251 + 1 | 0x80) }
        let cases: [(bytes: [UInt8], error: KeyError)] = [
            (Array("SQLite format 3\0".utf8) + [UInt8](repeating: 1, count: 84), .database),
            ([UInt8](repeating: 0, count: 67), .binary), (Array("secret\0".utf8), .binary), (random, .binary),
            (Array("pass\n\n".utf8), .severalLines), (Array("\npass".utf8), .severalLines),
            (Array("one\ntwo\n".utf8), .severalLines), (Array("one\r\ntwo".utf8), .severalLines),
            (Array("pass\r".utf8), .severalLines),
        ]
        for (bytes, error) in cases {
            #expect(throws: error) { try CipherKey(text: SecretBytes(bytes)) }
            #expect(try CipherKey.passphrase(SecretBytes(bytes)).form == .passphrase)
        }
        // Shorter than any database, so it may be text in another encoding.
        #expect(try CipherKey(text: SecretBytes(random.dropLast())).form == .passphrase)
        #expect(try CipherKey(text: SecretBytes(String(repeating: "é", count: 400).utf8)).form == .passphrase)
    }

    @Test(
        "An empty key or a malformed raw key throws", arguments: ["", "\n", "x'", "x''", "x'00'", "x'zz"])
    func malformed(text: String) throws {
        #expect(throws: KeyError.self) { try CipherKey(text: SecretBytes(Array(text.utf8))) }
        #expect(throws: KeyError.self) { try CipherKey.passphrase(SecretBytes(Array(text.utf8.filter { $0 != 10 }))) }
        #expect(throws: KeyError.self) { try CipherKey.raw(SecretBytes(Array(text.utf8))) }
    }

    @Test("A key with a byte order mark throws, as does a raw key after white space: neither is used as a passphrase")
    func byteOrderMark() throws {
        let raw = Array("x'\(String(repeating: "0f", count: 32))'".utf8)
        for mark: [UInt8] in [[0xef, 0xbb, 0xbf], [0xff, 0xfe], [0xfe, 0xff]] {
            for text in [raw, Array("secret".utf8), []] {
                #expect(throws: KeyError.byteOrderMark) { try CipherKey(text: SecretBytes(mark + text)) }
            }
        }
        for space in [" ", "\t", "\n", "\r\n "] {
            #expect(throws: KeyError.malformed) { try CipherKey(text: SecretBytes(Array(space.utf8) + raw)) }
        }
        #expect(try CipherKey(text: SecretBytes(" xylophone".utf8)) == CipherKey.passphrase(" xylophone"))
    }

    @Test("Two random keys differ")
    func random() throws {
        #expect(try CipherKey.random() != CipherKey.random())
        #expect(try CipherKey.random().form == .raw)
    }

    // The description of a local or private type contains an address, which can contain any digits.
    struct Holder { var key: CipherKey }

    @Test("No description, dump or mirror shows a key")
    func redaction() throws {
        let text = "hunter2"
        let raw = try CipherKey.raw(SecretBytes(repeatElement(0xab, count: 32)))
        for key in [raw, try .passphrase(text)] {
            let holder = Holder(key: key)
            var dumped = ""
            for value: Any in [key, holder, [holder], Optional(holder) as Any] {
                dumped += String(describing: value) + String(reflecting: value) + "\(value)"
                dump(value, to: &dumped)
            }
            for trace in [text, "abab", "ABAB", "171", "\(Array(text.utf8))", "104, 117"] {
                #expect(!dumped.contains(trace))
            }
        }
        #expect(Mirror(reflecting: raw).children.isEmpty)
    }
}
