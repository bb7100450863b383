#if !canImport(CommonCrypto)
    internal import CCipherCrypto
#endif

/// AES-256 in CBC mode and HMAC-SHA512 of several messages side by side, for one thread at a time.
///
/// Both are serial within a message; of several messages a processor computes one in each lane of its vector registers,
/// which is some five times as fast. Only where libipsec-mb is there, on x86-64 with AVX2; elsewhere ``AESCBC`` and ``HMAC``
/// take one message after the other.
/// Source: NIST SP 800-38A, section 6.2; RFC 2104.
package final class MessageLanes {
    /// One of the messages.
    package struct Message {
        let input: UnsafePointer<UInt8>
        let count: Int
        let vector: UnsafePointer<UInt8>?
        let output: UnsafeMutablePointer<UInt8>

        /// - Parameters:
        ///   - vector: To encrypt, the initialisation vector, 16 bytes.
        ///   - output: As many bytes as the input; of an HMAC 64, which may overlap the end of the input.
        package init(
            _ input: UnsafePointer<UInt8>, count: Int, vector: UnsafePointer<UInt8>? = nil,
            into output: UnsafeMutablePointer<UInt8>
        ) {
            self.input = input
            self.count = count
            self.vector = vector
            self.output = output
        }
    }

    #if canImport(CommonCrypto)
        // There is no such library where CommonCrypto is.
        package init?(encryption: UnsafeRawBufferPointer, authentication: UnsafeRawBufferPointer) { return nil }
        package func encrypt(_ messages: some Collection<Message>) -> Bool { false }
        package func authenticate(_ messages: some Collection<Message>) -> Bool { false }
    #else
        private let lanes: OpaquePointer
        private var messages: [cs_message] = []

        /// `nil` if the library is not there, or does not compute what libcrypto does.
        ///
        /// - Parameters:
        ///   - encryption: The key of AES, 32 bytes.
        ///   - authentication: The key of the HMACs, 32 bytes.
        package convenience init?(encryption: UnsafeRawBufferPointer, authentication: UnsafeRawBufferPointer) {
            guard Self.agreesWithLibcrypto else { return nil }
            self.init(unchecked: encryption, authentication)
        }

        private init?(unchecked encryption: UnsafeRawBufferPointer, _ authentication: UnsafeRawBufferPointer) {
            guard encryption.count == 32, authentication.count == 32,
                let lanes = cs_lanes_open(
                    encryption.baseAddress?.assumingMemoryBound(to: UInt8.self),
                    authentication.baseAddress?.assumingMemoryBound(to: UInt8.self))
            else { return nil }
            self.lanes = lanes
        }

        deinit { cs_lanes_close(lanes) }

        /// Encrypts whole blocks of 16 bytes; `false` if the library refuses, and the outputs are undefined.
        package func encrypt(_ messages: some Collection<Message>) -> Bool { run(messages, cs_lanes_encrypt) }

        /// Writes the HMAC of each message; `false` if the library refuses, and the outputs are undefined.
        package func authenticate(_ messages: some Collection<Message>) -> Bool { run(messages, cs_lanes_authenticate) }

        private func run(
            _ messages: some Collection<Message>, _ body: (OpaquePointer, UnsafePointer<cs_message>?, Int) -> Bool
        ) -> Bool {
            self.messages.removeAll(keepingCapacity: true)
            for message in messages {
                self.messages.append(
                    cs_message(
                        input: message.input, count: message.count, vector: message.vector, output: message.output))
            }
            return self.messages.withUnsafeBufferPointer { body(lanes, $0.baseAddress, $0.count) }
        }

        /// More messages than lanes, of unequal lengths.
        private static var probes: [Int] { (0..<17).map { 4016 - 16 * ($0 % 5) } }

        /// Whether the library computes what libcrypto does.
        ///
        /// Found out once in a process, with keys that are no secret.
        private static let agreesWithLibcrypto: Bool = (0..<32).map { UInt8($0 * 7 + 1) }.withUnsafeBytes {
            encryption in
            (0..<32).map { UInt8(255 - $0 * 5) }.withUnsafeBytes { authentication in
                MessageLanes(unchecked: encryption, authentication)?.agreesWithLibcrypto(encryption, authentication)
                    == true
            }
        }

        private func agreesWithLibcrypto(_ encryption: UnsafeRawBufferPointer, _ authentication: UnsafeRawBufferPointer)
            -> Bool
        {
            guard let cipher = AESCBC(.encrypt, key: encryption), let hmac = HMAC(.sha512, key: authentication) else {
                return false
            }
            let size = 4096
            let expected = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
            let computed = UnsafeMutablePointer<UInt8>.allocate(capacity: Self.probes.count * size)
            let input = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
            defer { for memory in [expected, computed, input] { memory.deallocate() } }
            for index in 0..<size { input[index] = UInt8(truncatingIfNeeded: index &* 31 &+ index >> 8) }
            let encryptions = Self.probes.enumerated().map {
                Message(input + $0 * 4, count: $1, vector: input + $0, into: computed + $0 * size)
            }
            // The HMACs overlap the ends of their messages, as those of pages do.
            let tags = Self.probes.enumerated().map {
                Message(computed + $0 * size, count: $1 - 4 * $0, into: computed + $0 * size + $1 - 4 * $0 - 4)
            }
            guard encrypt(encryptions) else { return false }
            var codes: [[UInt8]] = []
            for (message, tag) in zip(encryptions, tags) {
                guard cipher.apply(message.input, count: message.count, vector: input + codes.count, into: expected),
                    Cryptography.areEqual(
                        Self.bytes(expected, message.count), Self.bytes(message.output, message.count))
                else { return false }
                var code = [UInt8](repeating: 0, count: HashFunction.sha512.digestSize)
                guard hmac.begin(), hmac.update(tag.input, count: tag.count), hmac.finish(into: &code) else {
                    return false
                }
                codes.append(code)
            }
            guard authenticate(tags) else { return false }
            return zip(tags, codes).allSatisfy { tag, code in
                code.withUnsafeBytes { Cryptography.areEqual($0, Self.bytes(tag.output, $0.count)) }
            }
        }

        private static func bytes(_ start: UnsafePointer<UInt8>, _ count: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(start: start, count: count)
        }
    #endif
}
