internal import CipherPrimitives
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite

/// The keys of one upgrade, derived on background threads while the source is brought to rest.
struct UpgradeKeys {
    /// The key of the copy, for the builder.
    let building: BackgroundTask<FileKey>
    /// The key that the provider returned the second time, unchanged.
    let again: CipherKey
    /// The key derived from the one that the provider returned the second time, so that the proof shares no key object
    /// with the builder.
    let proving: BackgroundTask<CipherKey>

    /// - Parameters:
    ///   - key: The key that the provider returned first.
    ///   - again: The key that the provider returned when it was asked again, which must be equal.
    ///   - salt: The salt of an existing copy; `nil` for a new one.
    init(_ key: CipherKey, again: CipherKey, settings: CipherSettings, salt: SecretBytes? = nil) throws {
        let salt = try key.salt ?? salt ?? SecretBytes.random(count: CipherKey.saltLength)
        self.again = again
        // A raw key requires almost no derivation.
        let isLong = key.form == .passphrase
        building = BackgroundTask("key", isLong: isLong) { _ in try FileKey(key, salt: salt, settings) }
        proving = BackgroundTask("proof key", isLong: isLong) { _ in try again.rawKey(salt: salt, settings: settings) }
    }

    /// Waits for both threads: if the process exits while they run, libcrypto is unloaded under them.
    func cancel() {
        building.cancel()
        proving.cancel()
    }
}

extension KeyProvider {
    /// Requests the key again, as the next opening of the file would.
    ///
    /// The key must be the same as `first`.
    func keyAskedAgain(_ first: CipherKey, database: String) throws -> CipherKey {
        let again = try checkedKey(for: .existing, database: database)
        guard again == first else {
            throw StoreError(
                .keyChanged, path: database, "the key provider returned a different key when it was called again",
                advice: "correct the provider: it must store a new key before returning it", changed: .nothing
            )
        }
        return again
    }
}
