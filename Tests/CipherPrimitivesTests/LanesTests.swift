import CipherPrimitives
import Testing

/// Compares the processing of several messages at a time with libcrypto's processing of single messages.
@Suite("Several messages encrypted at once", .enabled(if: makeLanes() != nil, "libipsec-mb is not there"))
struct LanesTests {
    @Test("Several messages of any length are encrypted and authenticated as each one alone would be")
    func agreement() throws {
        let lanes = try #require(makeLanes())
        let cipher = try #require(encryptionKey.withUnsafeBytes { AESCBC(.encrypt, key: $0) })
        let hmac = try #require(authenticationKey.withUnsafeBytes { HMAC(.sha512, key: $0) })
        var random = SystemRandomNumberGenerator()
        for count in Array(1...20) + [64, 200] {
            let sizes = (0..<count).map { _ in 16 * Int.random(in: 1...300, using: &random) }
            let inputs = sizes.map { size in (0..<size).map { _ in UInt8.random(in: .min ... .max, using: &random) } }
            let vectors = sizes.map { _ in (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) } }
            let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: count * 4_864)
            defer { memory.deallocate() }
            try withPointers(inputs) { inputPointers in
                try withPointers(vectors) { vectorPointers in
                    let areEncrypted = lanes.encrypt(
                        (0..<count).map {
                            MessageLanes.Message(
                                inputPointers[$0], count: sizes[$0], vector: vectorPointers[$0],
                                into: memory + $0 * 4_864)
                        })
                    #expect(areEncrypted)
                }
                for index in 0..<count {
                    var expected = [UInt8](repeating: 0, count: sizes[index])
                    let isEncrypted = cipher.apply(
                        inputs[index], count: sizes[index], vector: vectors[index], into: &expected)
                    #expect(isEncrypted)
                    #expect(Array(UnsafeBufferPointer(start: memory + index * 4_864, count: sizes[index])) == expected)
                }
                // Tests odd lengths, and output that overwrites the end of the message.
                let lengths = sizes.map { $0 - Int.random(in: 0..<16, using: &random) }
                for index in 0..<count {
                    (memory + index * 4_864).update(from: inputPointers[index], count: lengths[index])
                }
                let ends = lengths.map { max(0, $0 - 4) }
                let areAuthenticated = lanes.authenticate(
                    (0..<count).map {
                        let start = memory + $0 * 4_864
                        return MessageLanes.Message(start, count: lengths[$0], into: start + ends[$0])
                    })
                #expect(areAuthenticated)
                for index in 0..<count {
                    var expected = [UInt8](repeating: 0, count: 64)
                    let isComputed =
                        hmac.begin() && hmac.update(inputs[index], count: lengths[index])
                        && hmac.finish(into: &expected)
                    #expect(isComputed)
                    #expect(
                        Array(UnsafeBufferPointer(start: memory + index * 4_864 + ends[index], count: 64)) == expected)
                }
            }
        }
    }

    @Test("A key of the wrong length is refused")
    func refusals() {
        for count in [0, 16, 31, 33] {
            let other = [UInt8](repeating: 1, count: count)
            #expect(
                other.withUnsafeBytes { other in
                    encryptionKey.withUnsafeBytes { MessageLanes(encryption: $0, authentication: other) }
                } == nil)
            #expect(
                other.withUnsafeBytes { other in
                    encryptionKey.withUnsafeBytes { MessageLanes(encryption: other, authentication: $0) }
                } == nil)
        }
    }

    private func withPointers(_ arrays: [[UInt8]], _ body: ([UnsafePointer<UInt8>]) throws -> Void) throws {
        let memory = arrays.map { array in
            let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: array.count)
            copy.initialize(from: array, count: array.count)
            return copy
        }
        defer { for pointer in memory { pointer.deallocate() } }
        try body(memory.map { UnsafePointer($0) })
    }
}

private let encryptionKey = (0..<32).map { UInt8($0 * 7 + 1) }
private let authenticationKey = (0..<32).map { UInt8($0 * 5 + 3) }

private func makeLanes() -> MessageLanes? {
    encryptionKey.withUnsafeBytes { encryption in
        authenticationKey.withUnsafeBytes { MessageLanes(encryption: encryption, authentication: $0) }
    }
}
