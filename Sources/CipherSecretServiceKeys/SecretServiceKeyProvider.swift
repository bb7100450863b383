internal import CipherErrors
public import CipherKeyProviders
public import CipherSQLite

/// Gives the key that the desktop's key store keeps, by the Secret Service; tested with GNOME Keyring.
///
/// The store must be unlocked, as it is once the user has logged in; the user is never asked. libsecret is looked for when
/// the first key is asked for: an app without a desktop neither links nor needs it.
public struct SecretServiceKeyProvider: KeyProvider {
    /// The name under which the key is kept, such as the app's identifier; one for each key.
    let name: String
    /// Whether a new random key is stored where the store has none and a key may be made.
    let createIfMissing: Bool

    package init(name: String, createIfMissing: Bool) {
        self.name = name
        self.createIfMissing = createIfMissing
    }

    /// Gives the store's key.
    ///
    /// - Throws: ``StoreError`` with `keyUnavailable` if the store is unlocked and has no such key, `keyStoreLocked`,
    ///   `keyStoreUnavailable` where there is no libsecret, no session bus, no service, or one that refuses, and
    ///   `keyMalformed`.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        let session = try session()
        if let key = try stored(session) { return key }
        guard createIfMissing, purpose == .createOrExisting else { throw missing() }
        return try KeyCreationLock.withLock {
            // Another process may have been faster.
            if let key = try stored(session) { return key }
            let key = try CipherKey.generated(for: "a new key of the desktop's key store")
            try session.store(key.text)
            // What counts is what the store gives to the next one who asks.
            guard let stored = try stored(session), stored == key else {
                throw StoreError(
                    .keyStoreUnavailable, "the desktop's key store did not keep the new key \(name)",
                    advice: "check the key store", changed: .nothing)
            }
            return stored
        }
    }

    /// Gives the store's key; `nil` if it is unlocked, has none, and one may be made.
    public func plannedKey(database: String) throws -> CipherKey? {
        if let key = try stored(session()) { return key }
        guard createIfMissing else { throw missing() }
        return nil
    }

    /// Removes the key from the store, for good.
    ///
    /// A database that is encrypted with it can never be read again: for a key that no file has any more.
    ///
    /// - Throws: ``StoreError`` with `keyStoreLocked` or `keyStoreUnavailable`; no error where there is no such key.
    public func removeKey() throws {
        try session().remove()
    }

    private func missing() -> StoreError { .noKey(named: name, in: "the desktop's key store") }

    private func session() throws -> SecretServiceSession {
        guard !name.isEmpty, !name.utf8.contains(0) else {
            throw StoreError(
                .keyUnavailable, "the name of the key in the desktop's key store is empty or contains a NUL character",
                advice: "give a name such as the app's identifier")
        }
        return try SecretServiceSession(name: name)
    }

    private func stored(_ session: SecretServiceSession) throws -> CipherKey? {
        let secrets = try session.secrets()
        guard let first = secrets.first else { return nil }
        guard secrets.allSatisfy({ $0 == first }) else {
            throw StoreError(
                .keyMalformed, "the desktop's key store has several different keys named \(name)",
                advice: "remove those that do not belong to this database", changed: .nothing)
        }
        return try KeyText.parse(first, origin: "the desktop's key store")
    }
}

extension KeyProvider where Self == SecretServiceKeyProvider {
    /// The key in the desktop's key store, which is asked each time the key is.
    ///
    /// - Parameters:
    ///   - name: The name under which the store keeps the key.
    ///   - createIfMissing: Whether a new random key is stored where the store is unlocked and has none, when a database
    ///     is to be encrypted. A key is never made for a database that is encrypted already.
    public static func secretService(_ name: String, createIfMissing: Bool = false) -> SecretServiceKeyProvider {
        SecretServiceKeyProvider(name: name, createIfMissing: createIfMissing)
    }
}
