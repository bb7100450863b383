internal import CipherErrors
package import CipherPrimitives
package import CipherSQLite
internal import CipherSystemFiles

/// The keys that were derived from passphrases and are in use in this process, so that a second store on a file need
/// not derive its key again.
///
/// A key is retained as long as an object refers to it, and is erased when the last reference is released. Of the
/// passphrase, only an HMAC with a random secret of this process is stored, which suffices to recognize the same
/// passphrase. It is erased together with the key: someone who reads it can try a passphrase with one HMAC, instead of
/// the rounds that the key costs.
// Unchecked, but thread-safe: `known` is read and written only while `lock` is held; the other properties never
// change.
package final class DerivedKeys: @unchecked Sendable {
    package static let inUse = DerivedKeys()

    private struct Known {
        let number: Int
        let origin: SecretBytes
        weak var keyBytes: SecretBytes?
    }

    private var known: [Known] = []
    private var derivations = 0
    private let lock = Lock()
    private let secret = try? SecretBytes.random(count: 32)

    package init() {}

    /// Returns the raw key that belongs to a key in the file with this salt, as ``CipherKey/rawKey(salt:settings:)``
    /// does.
    package func rawKey(of key: CipherKey, salt: SecretBytes, settings: CipherSettings) throws -> CipherKey {
        guard key.form == .passphrase, let secret else { return try key.rawKey(salt: salt, settings: settings) }
        let origin = try Self.origin(of: key, salt, settings, secret)
        if let keyBytes = find(origin) { return CipherKey(form: .rawWithSalt, keyBytes: keyBytes) }
        let keyBytes = remember(try key.rawKey(salt: salt, settings: settings).keyBytes, origin)
        return CipherKey(form: .rawWithSalt, keyBytes: keyBytes)
    }

    /// Returns whether anything is stored that tells whether a passphrase is the right one.
    package func holdTrace(of key: CipherKey, salt: SecretBytes, settings: CipherSettings) throws -> Bool {
        guard let secret else { return false }
        let origin = try Self.origin(of: key, salt, settings, secret)
        return lock.withLock { known.contains { $0.origin == origin } }
    }

    /// Returns a copy of a derived key whose release removes the trace of its passphrase.
    private func remember(_ derived: SecretBytes, _ origin: SecretBytes) -> SecretBytes {
        let number = lock.withLock {
            derivations += 1
            return derivations
        }
        let keyBytes = SecretBytes(count: derived.count, onRelease: { [weak self] in self?.forget(number) }) { buffer in
            derived.withUnsafeBytes { buffer.copyMemory(from: $0) }
        }
        lock.withLock { known.append(Known(number: number, origin: origin, keyBytes: keyBytes)) }
        return keyBytes
    }

    private func forget(_ number: Int) {
        lock.withLock { known.removeAll { $0.number == number } }
    }

    /// Returns a key that is in use.
    ///
    /// The reference to it leaves the lock: the last one to be released acquires the lock in turn.
    private func find(_ origin: SecretBytes) -> SecretBytes? {
        lock.withLock {
            for entry in known where entry.origin == origin {
                if let keyBytes = entry.keyBytes { return keyBytes }
            }
            return nil
        }
    }

    /// Returns one round of PBKDF2, which is an HMAC-SHA512 of its salt argument.
    private static func origin(
        of key: CipherKey, _ salt: SecretBytes, _ settings: CipherSettings, _ secret: SecretBytes
    ) throws -> SecretBytes {
        let derivation = SecretBytes("\(settings.kdfAlgorithm.rawValue) \(settings.kdfIterations)".utf8)
        let message = SecretBytes(count: secret.count + salt.count + derivation.count) { buffer in
            var start = 0
            for part in [secret, salt, derivation] {
                part.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: buffer[start...]).copyMemory(from: $0) }
                start += part.count
            }
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
