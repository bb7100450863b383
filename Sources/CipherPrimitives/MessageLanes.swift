#if !canImport(CommonCrypto)
    internal import CCipherCrypto
#endif

/// AES-256 in CBC mode and HMAC-SHA512 of several messages in parallel, for use by one thread at a time.
///
/// Both are serial within a message, but a processor can compute a separate message in each lane of its vector
/// registers, which is about five times as fast. This requires libipsec-mb on x86-64 with AVX2. Elsewhere, ``AESCBC``
/// and ``HMAC`` process one message after the other. Source: NIST SP 800-38A, section 6.2; RFC 2104.
package final class MessageLanes {
    /// One message.
    package struct Message {
        let input: UnsafePointer<UInt8>
        let count: Int
        let vector: UnsafePointer<UInt8>?
        let output: UnsafeMutablePointer<UInt8>

        /// - Parameters:
        ///   - vector: The initialization vector for encryption, 16 bytes.
        ///   - output: As many bytes as the input for encryption; 64 bytes for an HMAC, which may overlap the end of
        ///     the input.
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
        // The library does not exist on platforms with CommonCrypto.
        package init?(encryption: UnsafeRawBufferPointer, authentication: UnsafeRawBufferPointer) { return nil }
        package func encrypt(_ messages: some Collection<Message>) -> Bool { false }
        package func authenticate(_ messages: some Collection<Message>) -> Bool { false }
    #else
        private let lanes: OpaquePointer
        private var messages: [cs_message] = []

        /// Creates the lanes; `nil` if the library is absent, or if its results differ from libcrypto's.
        ///
        /// - Parameters:
        ///   - encryption: The AES key, 32 bytes.
        ///   - authentication: The HMAC key, 32 bytes.
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

        /// Encrypts whole blocks of 16 bytes.
        ///
        /// Returns `false` if the library fails; the outputs are then undefined.
        package func encrypt(_ messages: some Collection<Message>) -> Bool { run(messages, cs_lanes_encrypt) }

        /// Writes the HMAC of each message.
        ///
        /// Returns `false` if the library fails; the outputs are then undefined.
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

        /// The lengths of the test messages: more messages than there are lanes, of unequal lengths.
        private static var probes: [Int] { (0..<17).map { 4016 - 16 * ($0 % 5) } }

        /// Whether the library's results match libcrypto's.
        ///
        /// Checked once per process, with keys that are not secret.
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
            // The HMACs overlap the ends of their messages, as they do in database pages.
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
