import CipherPrimitives
import Testing

@Suite("Secrets")
struct SecretTests {
    @Test("Random bytes fill the whole buffer and differ each time")
    func randomness() {
        var drawn: Set<[UInt8]> = []
        var isByteSet = [Bool](repeating: false, count: 33)
        for _ in 1...32 {
            var buffer = [UInt8](repeating: 0, count: isByteSet.count)
            let isDone = buffer.withUnsafeMutableBytes(Cryptography.randomize)
            #expect(isDone)
            for (index, byte) in buffer.enumerated() where byte != 0 { isByteSet[index] = true }
            drawn.insert(buffer)
        }
        #expect(drawn.count == 32)
        // The chance that one of these is zero each time is 1 in 2^256.
        #expect(isByteSet.allSatisfy { $0 })
    }

    @Test("Erasing sets exactly the given bytes to zero")
    func erasing() {
        var buffer = [UInt8](repeating: 0xff, count: 40)
        buffer.withUnsafeMutableBytes { Cryptography.erase(UnsafeMutableRawBufferPointer(rebasing: $0[..<39])) }
        #expect(buffer == Array(repeating: 0, count: 39) + [0xff])
    }

    @Test("Secrets are equal only if all of their bytes are equal")
    func equality() {
        func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
            left.withUnsafeBytes { left in right.withUnsafeBytes { Cryptography.areEqual(left, $0) } }
        }
        let secret = [UInt8](1...33)
        #expect(areEqual(secret, secret))
        #expect(areEqual([], []))
        #expect(!areEqual(secret, secret.dropLast()))
        #expect(!areEqual(secret, secret + [0]))
        for index in secret.indices {
            var other = secret
            other[index] ^= 0x80
            #expect(!areEqual(secret, other))
        }
    }
}
