/// PBKDF2 that exposes the key after each round; libcrypto and CommonCrypto return it only after the last round.
///
/// Used to search for an unknown number of rounds: one pass tries every number. The cryptographic library computes the
/// HMACs. Source: RFC 8018, section 5.2: each block of the key is the XOR of the HMACs of all rounds.
package final class PBKDF2Rounds {
    private let hmac: HMAC
    private let digestSize: Int
    private let blocks: Int
    // The HMAC of the last round of each block, followed by the XORs.
    private let memory: UnsafeMutableRawBufferPointer

    /// The number of rounds computed so far.
    package private(set) var count = 0

    /// Computes the first round; `nil` if the cryptographic library fails.
    ///
    /// - Parameters:
    ///   - password: The password, of at least one byte.
    ///   - keySize: The length of the key in bytes.
    package init?(
        _ function: HashFunction, password: UnsafeRawBufferPointer, salt: UnsafeRawBufferPointer, keySize: Int
    ) {
        guard let hmac = HMAC(function, key: password) else { return nil }
        self.hmac = hmac
        digestSize = function.digestSize
        blocks = (keySize + digestSize - 1) / digestSize
        memory = .allocate(byteCount: 2 * blocks * digestSize, alignment: 16)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        let salt = salt.bindMemory(to: UInt8.self)
        for block in 0..<blocks {
            let number = withUnsafeBytes(of: UInt32(block + 1).bigEndian) { Array($0) }
            guard let start = salt.baseAddress, hmac.begin(), hmac.update(start, count: salt.count),
                hmac.update(number, count: number.count), hmac.finish(into: last(block))
            else { return nil }
        }
        addToSums()
    }

    deinit {
        Cryptography.erase(memory)
        memory.deallocate()
    }

    /// Computes one more round; `false` if the cryptographic library fails.
    package func advance() -> Bool {
        for block in 0..<blocks {
            guard hmac.begin(), hmac.update(last(block), count: digestSize), hmac.finish(into: last(block)) else {
                return false
            }
        }
        addToSums()
        return true
    }

    /// The key after these rounds, followed by the unused rest of the last block.
    package var key: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: memory[(blocks * digestSize)...])
    }

    private func last(_ block: Int) -> UnsafeMutablePointer<UInt8> {
        // The memory has a base address because there is at least one block.
        (memory.baseAddress.unsafelyUnwrapped + block * digestSize).assumingMemoryBound(to: UInt8.self)
    }

    private func addToSums() {
        let words = blocks * digestSize / 4
        for index in 0..<words {
            let sum = memory.load(fromByteOffset: 4 * (words + index), as: UInt32.self)
            let term = memory.load(fromByteOffset: 4 * index, as: UInt32.self)
            memory.storeBytes(of: sum ^ term, toByteOffset: 4 * (words + index), as: UInt32.self)
        }
        count += 1
    }
}
