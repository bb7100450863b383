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
        // SQLCipher accepts any number of rounds in any format.
        let fewer = CipherSettings(kdfIterations: 1)
        let others = [
            try keys.rawKey(of: .passphrase("one passphras"), salt: salt, settings: CipherSettings()),
            try keys.rawKey(of: key, salt: SecretBytes([UInt8](1..<17)), settings: CipherSettings()),
            try keys.rawKey(of: key, salt: salt, settings: older),
            try keys.rawKey(of: key, salt: salt, settings: fewer),
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

    @Test("No trace of a passphrase is left after the last of several holders has released its key")
    func trace() throws {
        do {
            let first = try keys.rawKey(of: key, salt: salt, settings: CipherSettings())
            do {
                let second = try keys.rawKey(of: key, salt: salt, settings: CipherSettings())
                #expect(second.keyBytes === first.keyBytes)
            }
            #expect(try keys.holdTrace(of: key, salt: salt, settings: CipherSettings()))
            withExtendedLifetime(first) {}
        }
        #expect(try !keys.holdTrace(of: key, salt: salt, settings: CipherSettings()))
    }

    @Test("Threads that derive and release the same key at the same time get the same key, and leave no trace")
    func threads() async throws {
        let settings = CipherSettings(kdfIterations: 1)
        let expected = try key.rawKey(salt: salt, settings: settings)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { [keys, key, salt] in
                    for _ in 0..<200 {
                        let found = try keys.rawKey(of: key, salt: salt, settings: settings)
                        #expect(found == expected)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try !keys.holdTrace(of: key, salt: salt, settings: settings))
    }

    @Test("A derived key of a raw key is the same raw key with the file's salt")
    func raw() throws {
        let raw = try CipherKey.random()
        let derived = try keys.rawKey(of: raw, salt: salt, settings: CipherSettings())
        #expect(derived == (try raw.rawKey(salt: salt, settings: CipherSettings())))
    }
}
