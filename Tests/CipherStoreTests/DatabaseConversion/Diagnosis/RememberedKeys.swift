internal import CipherPrimitives
import Foundation

/// The keys that the tests of the diagnosis have derived from their passphrases.
///
/// A derivation takes a fraction of a second, and most of these tests try the same readings of the same passphrase.
final class RememberedKeys: @unchecked Sendable {
    private struct Input: Hashable {
        let function: HashFunction
        let password: [UInt8]
        let salt: [UInt8]
        let rounds: Int
    }

    static let shared = RememberedKeys()
    private let lock = NSLock()
    // Accessed only with the lock.
    private var keys: [Input: [UInt8]] = [:]

    func derive(
        _ function: HashFunction, password: UnsafeRawBufferPointer, salt: UnsafeRawBufferPointer, rounds: Int,
        into output: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let input = Input(function: function, password: Array(password), salt: Array(salt), rounds: rounds)
        if let key = lock.withLock({ keys[input] }) {
            output.copyBytes(from: key)
            return true
        }
        guard Cryptography.pbkdf2(function, password: password, salt: salt, rounds: rounds, into: output) else {
            return false
        }
        lock.withLock { keys[input] = Array(output) }
        return true
    }
}
