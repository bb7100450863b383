#if canImport(Security)
    internal import CipherPlatform
    public import CipherSQLite
    internal import Security

    /// A provider of a key in the keychain of an Apple device.
    ///
    /// The key can be read after the first unlock following a restart, so that the app can open its database in the
    /// background. Before the first unlock, it is unknown whether the key exists, and none is created. This
    /// repository's CI compiles this type, against declarations of its own, but does not run it. Source: Apple,
    /// "Keychain Services", `kSecAttrAccessibleAfterFirstUnlock`.
    public struct KeychainKeyProvider: KeyProvider {
        /// The name under which the key is stored, such as the app's identifier; it must be unique for each key.
        let name: String
        /// Whether a new random key is stored if the keychain has none and a key may be created.
        let createIfMissing: Bool

        package init(name: String, createIfMissing: Bool) {
            self.name = name
            self.createIfMissing = createIfMissing
        }

        /// Returns the keychain's key.
        ///
        /// - Throws: ``StoreError`` with the code `keyUnavailable` if the keychain has no such key, `keyStoreLocked`
        ///   before the first unlock, `keyStoreUnavailable` if the keychain reports another failure, and
        ///   `keyMalformed`.
        public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
            if let key = try stored(database) { return key }
            guard createIfMissing, purpose == .createOrExisting else { throw missing() }
            try store()
            // If another process was faster, its key is used.
            guard let key = try stored(database) else { throw missing() }
            return key
        }

        /// Returns the keychain's key; `nil` if there is none and one may be created.
        public func plannedKey(database: String) throws -> CipherKey? {
            if let key = try stored(database) { return key }
            guard createIfMissing else { throw missing() }
            return nil
        }

        /// Permanently removes the key from the keychain.
        ///
        /// A database that is encrypted with this key can never be read again. Call this only for a key that no file
        /// uses any more.
        ///
        /// - Throws: ``StoreError`` with the code `keyStoreLocked` or `keyStoreUnavailable`. It is not an error if
        ///   there is no such key.
        public func removeKey() throws {
            let status = SecItemDelete(item as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else { throw failure(status) }
        }

        private var item: [CFString: Any] {
            [
                kSecClass: kSecClassGenericPassword, kSecAttrService: name, kSecAttrAccount: "database key",
                kSecUseDataProtectionKeychain: true,
            ]
        }

        private func stored(_ database: String) throws -> CipherKey? {
            try KeyText.refuseKey(name, as: "the name of a key in the keychain", database: database)
            let query = item.merging([kSecReturnData: true, kSecMatchLimit: kSecMatchLimitOne]) { $1 }
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            if status == errSecItemNotFound { return nil }
            guard status == errSecSuccess, let data = found as? Data else { throw failure(status) }
            return try KeyText.parse(SecretBytes(data), origin: "the keychain")
        }

        private func store() throws {
            let text = try CipherKey.generated(for: "a new key for the keychain").text.withUnsafeBytes { Data($0) }
            let new = item.merging([
                kSecValueData: text, kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlock,
            ]) { $1 }
            let status = SecItemAdd(new as CFDictionary, nil)
            guard status == errSecSuccess || status == errSecDuplicateItem else { throw failure(status) }
        }

        private func missing() -> StoreError {
            .noKey(named: name, in: "the keychain")
        }

        private func failure(_ status: OSStatus) -> StoreError {
            if status == errSecInteractionNotAllowed {
                return StoreError(
                    .keyStoreLocked,
                    "the device has not been unlocked since it started, so it is unknown whether the key \(name) "
                        + "exists",
                    advice: "unlock the device and try again", changed: .nothing)
            }
            return StoreError(
                .keyStoreUnavailable, "the key \(name) could not be read from the keychain: OSStatus \(status)",
                advice: "check the app's keychain entitlement", changed: .nothing)
        }
    }

    extension KeyProvider where Self == KeychainKeyProvider {
        /// Returns a provider for a key in the keychain of an Apple device, which is read each time a key is requested.
        ///
        /// - Parameters:
        ///   - name: The name under which the key is stored in the keychain.
        ///   - createIfMissing: Whether a new random key is stored if the keychain has none and a database is about to
        ///     be encrypted. A key is never created for a database that is already encrypted.
        public static func keychain(_ name: String, createIfMissing: Bool = false) -> KeychainKeyProvider {
            KeychainKeyProvider(name: name, createIfMissing: createIfMissing)
        }
    }
#endif
