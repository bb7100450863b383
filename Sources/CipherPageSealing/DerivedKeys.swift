internal import CipherErrors
package import CipherPrimitives
package import CipherSQLite
internal import CipherSystemFiles

/// The keys that were derived from passphrases and are in use in this process, so that a second store on a file need
/// not derive its key again.
///
/// A key is retained as long as an object refers to it, and is erased when the last reference is released. Of the
/// passphrase, only an HMAC with a random secret of this process is stored, which suffices to recognize the same
/// passphrase.
// Unchecked, but thread-safe: `known` is read and written only while `lock` is held; the other properties never
// change.
package final class DerivedKeys: @unchecked Sendable {
    package static let inUse = DerivedKeys()

    private struct Known {
        let origin: SecretBytes
        weak var keyBytes: SecretBytes?
    }

    private var known: [Known] = []
    private let lock = Lock()
    private let secret = try? SecretBytes.random(count: 32)

    package init() {}

    /// Returns the raw key that belongs to a key in the file with this salt, as ``CipherKey/rawKey(salt:settings:)``
    /// does.
    package func rawKey(of key: CipherKey, salt: SecretBytes, settings: CipherSettings) throws -> CipherKey {
        guard key.form == .passphrase, let secret else { return try key.rawKey(salt: salt, settings: settings) }
        let origin = try Self.origin(of: key, salt, settings, secret)
        if let keyBytes = find(origin) { return CipherKey(form: .rawWithSalt, keyBytes: keyBytes) }
        let derived = try key.rawKey(salt: salt, settings: settings)
        lock.withLock { known.append(Known(origin: origin, keyBytes: derived.keyBytes)) }
        return derived
    }

    private func find(_ origin: SecretBytes) -> SecretBytes? {
        lock.withLock {
            known.removeAll { $0.keyBytes == nil }
            return known.first { $0.origin == origin }?.keyBytes
        }
    }

    /// Returns one round of PBKDF2, which is an HMAC-SHA512 of its salt argument.
    private static func origin(
        of key: CipherKey, _ salt: SecretBytes, _ settings: CipherSettings, _ secret: SecretBytes
    ) throws -> SecretBytes {
        let message = SecretBytes(count: secret.count + salt.count + 1) { buffer in
            for (part, start) in [(secret, 0), (salt, secret.count)] {
                part.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: buffer[start...]).copyMemory(from: $0) }
            }
            // The format determines the digest and the number of rounds.
            buffer[buffer.count - 1] = UInt8(truncatingIfNeeded: settings.compatibility)
        }
        return try SecretBytes(count: 64) { output in
            let isDone = key.keyBytes.withUnsafeBytes { passphrase in
                message.withUnsafeBytes { message in
                    Cryptography.pbkdf2(.sha512, password: passphrase, salt: message, rounds: 1, into: output)
                }
            }
            guard isDone else { throw KeyError.derivationFailed }
        }
    }
}
