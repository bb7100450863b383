import CipherPrimitives
import Testing

/// The hash functions and the functions that are built on them, against published vectors.
@Suite("Hash functions")
struct HashTests {
    struct Derivation: Sendable {
        let function: HashFunction
        let password: String
        let salt: String
        let rounds: Int
        let key: String
    }

    /// The vectors are from RFC 6070 for SHA-1, RFC 7914, section 11, for SHA-256, and CPython's `test_hashlib.py` for
    /// SHA-512.
    static let derivations = [
        Derivation(
            function: .sha1, password: "password", salt: "salt", rounds: 1,
            key: "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
        Derivation(
            function: .sha1, password: "password", salt: "salt", rounds: 2,
            key: "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"),
        Derivation(
            function: .sha1, password: "password", salt: "salt", rounds: 4096,
            key: "4b007901b765489abead49d926f721d065a429c1"),
        Derivation(
            function: .sha1, password: "passwordPASSWORDpassword", salt: "saltSALTsaltSALTsaltSALTsaltSALTsalt",
            rounds: 4096, key: "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"),
        Derivation(
            function: .sha1, password: "pass\0word", salt: "sa\0lt", rounds: 4096,
            key: "56fa6aa75548099dcc37d7f03425e0c3"),
        Derivation(
            function: .sha256, password: "passwd", salt: "salt", rounds: 1,
            key: """
                55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc
                49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783
                """),
        Derivation(
            function: .sha512, password: "password", salt: "salt", rounds: 1,
            key: """
                867f70cf1ade02cff3752599a3a53dc4af34c7a669815ae5d513554e1c8cf252
                c02d470a285a0501bad999bfe943c08f050235d7d68b1da55e63f73b60a57fce
                """),
        Derivation(
            function: .sha512, password: "passwordPASSWORDpassword", salt: "saltSALTsaltSALTsaltSALTsaltSALTsalt",
            rounds: 4096,
            key: """
                8c0511f4c6e597c6ac6315d8f0362e225f3c501495ba23b868c005174dc4ee71
                115b59f9e60cd9532fa33e0f75aefe30225c583a186cd82bd4daea9724a3d3b8
                """),
    ]

    @Test("An incremental derivation has the right key after each round", arguments: HashFunction.allCases)
    func keyOfEachRound(function: HashFunction) throws {
        let (password, salt) = (Array("a passphrase".utf8), Array("sixteen bytes so".utf8))
        for size in [16, 32, 100] {
            let pass = try #require(
                password.withUnsafeBytes { password in
                    salt.withUnsafeBytes { PBKDF2Rounds(function, password: password, salt: $0, keySize: size) }
                })
            for rounds in 1...50 {
                var whole = [UInt8](repeating: 0, count: size)
                let isDone = whole.withUnsafeMutableBytes { whole in
                    password.withUnsafeBytes { password in
                        salt.withUnsafeBytes {
                            Cryptography.pbkdf2(function, password: password, salt: $0, rounds: rounds, into: whole)
                        }
                    }
                }
                #expect(isDone)
                #expect(pass.count == rounds)
                #expect(Array(pass.key.prefix(size)) == whole)
                #expect(pass.advance())
            }
        }
    }

    @Test("PBKDF2 derives the published keys", arguments: derivations)
    func pbkdf2(_ derivation: Derivation) {
        let expected = bytes(derivation.key)
        var key = [UInt8](repeating: 0, count: expected.count)
        let isDone = key.withUnsafeMutableBytes { key in
            bytes(text: derivation.password).withUnsafeBytes { password in
                bytes(text: derivation.salt).withUnsafeBytes { salt in
                    Cryptography.pbkdf2(
                        derivation.function, password: password, salt: salt, rounds: derivation.rounds, into: key)
                }
            }
        }
        #expect(isDone)
        #expect(key == expected)
    }

    struct Code: Sendable {
        let function: HashFunction
        let key: [UInt8]
        let message: String
        let mac: String
    }

    /// The vectors are from RFC 2202 for SHA-1, and from RFC 4231 for SHA-256 and SHA-512.
    static let codes = [
        Code(
            function: .sha1, key: bytes(text: "Jefe"), message: "what do ya want for nothing?",
            mac: "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        Code(
            function: .sha256, key: Array(repeating: 0x0b, count: 20), message: "Hi There",
            mac: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        Code(
            function: .sha512, key: Array(repeating: 0x0b, count: 20), message: "Hi There",
            mac: """
                87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde
                daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854
                """),
        Code(
            function: .sha512, key: bytes(text: "Jefe"), message: "what do ya want for nothing?",
            mac: """
                164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554
                9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737
                """),
        Code(
            function: .sha512, key: Array(repeating: 0xaa, count: 131),
            message: "Test Using Larger Than Block-Size Key - Hash Key First",
            mac: """
                80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352
                6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598
                """),
    ]

    @Test("A message in parts has the published HMAC, each time the HMAC is started", arguments: codes)
    func hmac(_ code: Code) throws {
        let hmac = try #require(code.key.withUnsafeBytes { HMAC(code.function, key: $0) })
        let message = bytes(text: code.message)
        for _ in 1...2 {
            var mac = [UInt8](repeating: 0, count: code.function.digestSize)
            #expect(hmac.begin())
            #expect(hmac.update(message, count: 3))
            #expect(hmac.update(Array(message.dropFirst(3)), count: message.count - 3))
            let isDone = hmac.finish(into: &mac)
            #expect(isDone)
            #expect(mac == bytes(code.mac))
        }
    }

    /// The vectors are NIST's examples for FIPS 180-4, and the digest of an empty message.
    static let digests = [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ]

    @Test("SHA-256 has the published digests", arguments: digests)
    func sha256(_ text: String, _ digest: String) {
        #expect(bytes(text: text).withUnsafeBytes(Cryptography.sha256) == bytes(digest))
    }
}
