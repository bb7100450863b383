internal import CipherSQLite
import Testing

@Suite("A secret")
struct SecretBytesTests {
    private struct Holder {
        var secret: SecretBytes
        var key: CipherKey
    }

    @Test("is shown by no description, dump or mirror")
    func redaction() throws {
        let text = "hunter2"
        let secret = SecretBytes(Array(text.utf8))
        let raw = try CipherKey.raw(SecretBytes(repeatElement(0xab, count: 32)))
        for key in [raw, try .passphrase(text)] {
            let holder = Holder(secret: secret, key: key)
            var dumped = ""
            for value: Any in [secret, key, holder, [holder], Optional(holder) as Any] {
                dumped += String(describing: value) + String(reflecting: value) + "\(value)"
                dump(value, to: &dumped)
            }
            for trace in [text, "abab", "ABAB", "171", "\(Array(text.utf8))", "104, 117"] {
                #expect(!dumped.contains(trace))
            }
        }
        #expect("\(secret)" == "<secret>")
        #expect(Mirror(reflecting: secret).children.isEmpty)
        #expect(Mirror(reflecting: raw).children.isEmpty)
    }

    @Test("is compared by its bytes")
    func equality() {
        #expect(SecretBytes([1, 2]) == SecretBytes([1, 2]))
        #expect(SecretBytes([1, 2]) != SecretBytes([1, 3]))
        #expect(SecretBytes([1, 2]) != SecretBytes([1]))
        #expect(SecretBytes([]) == SecretBytes([]))
    }

    @Test("of random bytes has its length")
    func random() throws {
        #expect(try SecretBytes.random(count: 48).count == 48)
        #expect(try SecretBytes.random(count: 16) != SecretBytes.random(count: 16))
    }
}
