import CipherPrimitives
import Testing

/// AES-256 in CBC mode, against NIST SP 800-38A, sections F.2.5 and F.2.6.
@Suite("AES-256 in CBC mode")
struct CipherTests {
    private let key = bytes("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    private let vector = bytes("000102030405060708090a0b0c0d0e0f")
    private let plaintext = bytes(
        """
        6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51
        30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710
        """)
    private let ciphertext = bytes(
        """
        f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d
        39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b
        """)

    @Test(
        "The cipher produces the published blocks, each time it starts anew",
        arguments: [CipherDirection.encrypt, .decrypt])
    func published(_ direction: CipherDirection) throws {
        let (input, expected) = direction == .encrypt ? (plaintext, ciphertext) : (ciphertext, plaintext)
        let cipher = try #require(key.withUnsafeBytes { AESCBC(direction, key: $0) })
        for _ in 1...2 {
            var output = [UInt8](repeating: 0, count: input.count)
            let isDone = cipher.apply(input, count: input.count, vector: vector, into: &output)
            #expect(isDone)
            #expect(output == expected)
        }
    }

    @Test("A different initialization vector produces a different ciphertext")
    func otherVector() throws {
        let cipher = try #require(key.withUnsafeBytes { AESCBC(.encrypt, key: $0) })
        var output = [UInt8](repeating: 0, count: plaintext.count)
        let isDone = cipher.apply(
            plaintext, count: plaintext.count, vector: Array(vector.reversed()), into: &output)
        #expect(isDone)
        #expect(output != ciphertext)
    }

    @Test("A key of the wrong length and an incomplete block are refused")
    func refusals() throws {
        for count in [0, 16, 31, 33] {
            #expect(Array(repeating: 1, count: count).withUnsafeBytes { AESCBC(.encrypt, key: $0) } == nil)
        }
        let cipher = try #require(key.withUnsafeBytes { AESCBC(.encrypt, key: $0) })
        var output = [UInt8](repeating: 0, count: plaintext.count)
        let isDone = cipher.apply(plaintext, count: 17, vector: vector, into: &output)
        #expect(!isDone)
    }
}
