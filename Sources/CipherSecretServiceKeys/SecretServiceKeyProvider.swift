internal import CipherErrors
public import CipherKeyProviders
public import CipherSQLite

/// A provider of a key in the desktop's key store, accessed through the Secret Service API; tested with GNOME Keyring.
///
/// The store must be unlocked, as it is once the user has logged in; the user is never prompted. libsecret is loaded
/// when the first key is requested, so an app without a desktop neither links nor needs it.
public struct SecretServiceKeyProvider: KeyProvider {
    /// The name under which the key is stored, such as the app's identifier; it must be unique for each key.
    let name: String
    /// Whether a new random key is stored if the store has none and a key may be created.
    let createIfMissing: Bool

    package init(name: String, createIfMissing: Bool) {
        self.name = name
        self.createIfMissing = createIfMissing
    }

    /// Returns the store's key.
    ///
    /// - Throws: ``StoreError`` with the code `keyUnavailable` if the store is unlocked and has no such key;
    ///   `keyStoreLocked`; `keyStoreUnavailable` if there is no libsecret, session bus or service, or if the service
    ///   denies the request; and `keyMalformed`.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        let session = try session(database)
        if let key = try stored(session) { return key }
        guard createIfMissing, purpose == .createOrExisting else { throw missing() }
        return try KeyCreationLock.withLock {
            // Another process may have been faster.
            if let key = try stored(session) { return key }
            let key = try CipherKey.generated(for: "a new key for the desktop keyring")
            try session.store(key.text)
            // The key to use is the one that the store will return to the next caller.
            guard let stored = try stored(session), stored == key else {
                throw StoreError(
                    .keyStoreUnavailable, "the desktop keyring did not save the new key \(name)",
                    advice: "check the keyring and try again", changed: .nothing)
            }
            return stored
        }
    }

    /// Returns the store's key; `nil` if the store is unlocked, has none, and one may be created.
    public func plannedKey(database: String) throws -> CipherKey? {
        if let key = try stored(session(database)) { return key }
        guard createIfMissing else { throw missing() }
        return nil
    }

    /// Permanently removes the key from the store.
    ///
    /// A database that is encrypted with this key can never be read again. Call this only for a key that no file uses
    /// any more.
    ///
    /// - Throws: ``StoreError`` with the code `keyStoreLocked` or `keyStoreUnavailable`. It is not an error if there is
    ///   no such key.
    public func removeKey() throws {
        try session().remove()
    }

    private func missing() -> StoreError { .noKey(named: name, in: "the desktop keyring") }

    private func session(_ database: String? = nil) throws -> SecretServiceSession {
        try KeyText.refuseKey(name, as: "the name of a key in the desktop keyring", database: database)
        guard !name.isEmpty, !name.utf8.contains(0) else {
            throw StoreError(
                .keyUnavailable, "the name of the key in the desktop keyring is empty or contains a NUL character",
                advice: "choose a name such as the app's identifier")
        }
        return try SecretServiceSession(name: name)
    }

    private func stored(_ session: SecretServiceSession) throws -> CipherKey? {
        let secrets = try session.secrets()
        guard let first = secrets.first else { return nil }
        guard secrets.allSatisfy({ $0 == first }) else {
            throw StoreError(
                .keyMalformed, "the desktop keyring has several different keys named \(name)",
                advice: "remove the keys that do not belong to this database", changed: .nothing)
        }
        return try KeyText.parse(first, origin: "the desktop keyring")
    }
}

extension KeyProvider where Self == SecretServiceKeyProvider {
    /// Returns a provider for a key in the desktop's key store, which is read each time a key is requested.
    ///
    /// - Parameters:
    ///   - name: The name under which the key is stored.
    ///   - createIfMissing: Whether a new random key is stored if the store is unlocked and has none, and a database is
    ///     about to be encrypted. A key is never created for a database that is already encrypted.
    public static func secretService(_ name: String, createIfMissing: Bool = false) -> SecretServiceKeyProvider {
        SecretServiceKeyProvider(name: name, createIfMissing: createIfMissing)
    }
}
