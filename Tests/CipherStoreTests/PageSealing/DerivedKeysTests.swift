internal import CipherPageSealing
internal import CipherSQLite
import Testing

struct DerivedKeysTests {
    private let keys = DerivedKeys()
    private let salt = SecretBytes([UInt8](0..<16))
    private let key: CipherKey

    init() throws {
        key = try .passphrase("one passphrase")
    }

    @Test("A derived key is the same object for the same passphrase, for as long as it is in use")
    func shared() throws {
        let first = try keys.rawKey(of: key, salt: salt, settings: CipherSettings())
        #expect(first == (try key.rawKey(salt: salt, settings: CipherSettings())))
        let second = try keys.rawKey(of: .passphrase("one passphrase"), salt: salt, settings: CipherSettings())
        #expect(second.keyBytes === first.keyBytes)
        #expect(second.form == .rawWithSalt)
    }

    @Test("A derived key is not returned for another passphrase, salt or format")
    func others() throws {
        let first = try keys.rawKey(of: key, salt: salt, settings: CipherSettings())
        let older = CipherSettings(compatibility: 2)
        let others = [
            try keys.rawKey(of: .passphrase("one passphras"), salt: salt, settings: CipherSettings()),
            try keys.rawKey(of: key, salt: SecretBytes([UInt8](1..<17)), settings: CipherSettings()),
            try keys.rawKey(of: key, salt: salt, settings: older),
        ]
        for other in others { #expect(other != first) }
    }

    @Test("A derived key is released with its last use")
    func forgotten() throws {
        weak var bytes: SecretBytes?
        do {
            let held = try keys.rawKey(of: key, salt: salt, settings: CipherSettings())
            bytes = held.keyBytes
            #expect(bytes != nil)
        }
        #expect(bytes == nil)
        #expect(try keys.rawKey(of: key, salt: salt, settings: CipherSettings()).form == .rawWithSalt)
    }

    @Test("A derived key of a raw key is the same raw key with the file's salt")
    func raw() throws {
        let raw = try CipherKey.random()
        let derived = try keys.rawKey(of: raw, salt: salt, settings: CipherSettings())
        #expect(derived == (try raw.rawKey(salt: salt, settings: CipherSettings())))
    }
}
