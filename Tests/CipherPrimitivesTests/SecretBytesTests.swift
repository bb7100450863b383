import CipherPrimitives
import Testing

/// Bytes that are never printed.
struct SecretBytesTests {
    @Test("No description, dump or mirror shows a secret")
    func redaction() {
        let text = "hunter2"
        let secret = SecretBytes(Array(text.utf8))
        var dumped = ""
        for value: Any in [secret, [secret], Optional(secret) as Any] {
            dumped += String(describing: value) + String(reflecting: value) + "\(value)"
            dump(value, to: &dumped)
        }
        for trace in [text, "\(Array(text.utf8))", "104, 117"] { #expect(!dumped.contains(trace)) }
        #expect("\(secret)" == "<secret>")
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test("Secrets are compared by their bytes")
    func equality() {
        #expect(SecretBytes([1, 2]) == SecretBytes([1, 2]))
        #expect(SecretBytes([1, 2]) != SecretBytes([1, 3]))
        #expect(SecretBytes([1, 2]) != SecretBytes([1]))
        #expect(SecretBytes([]) == SecretBytes([]))
    }

    @Test("Random secrets have the requested length and differ")
    func random() throws {
        #expect(try SecretBytes.random(count: 48).count == 48)
        #expect(try SecretBytes.random(count: 16) != SecretBytes.random(count: 16))
    }
}
