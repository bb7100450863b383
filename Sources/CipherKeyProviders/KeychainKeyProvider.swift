#if canImport(Security)
    public import CipherSQLite
    internal import Foundation
    internal import Security

    /// Gives the key that the keychain of an Apple device keeps.
    ///
    /// The key can be read from the first unlock after a restart on, so that the app can open its database in the
    /// background. Before it, whether there is a key is not known, and none is made. Not built in this repository's CI.
    /// Source: Apple, "Keychain Services", `kSecAttrAccessibleAfterFirstUnlock`.
    public struct KeychainKeyProvider: KeyProvider {
        /// The name under which the key is kept, such as the app's identifier; one for each key.
        let name: String
        /// Whether a new random key is stored where the keychain has none and a key may be made.
        let createIfMissing: Bool

        package init(name: String, createIfMissing: Bool) {
            self.name = name
            self.createIfMissing = createIfMissing
        }

        /// Gives the keychain's key.
        ///
        /// - Throws: ``StoreError`` with `keyUnavailable` if the keychain has no such key, `keyStoreLocked` before the
        ///   first unlock, `keyStoreUnavailable` and `keyMalformed`.
        public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
            if let key = try stored() { return key }
            guard createIfMissing, purpose == .createOrExisting else { throw missing() }
            try store()
            // Where another process was faster, its key counts.
            guard let key = try stored() else { throw missing() }
            return key
        }

        /// Gives the keychain's key; `nil` if it has none and one may be made.
        public func plannedKey(database: String) throws -> CipherKey? {
            if let key = try stored() { return key }
            guard createIfMissing else { throw missing() }
            return nil
        }

        /// Removes the key from the keychain, for good.
        ///
        /// A database that is encrypted with it can never be read again: for a key that no file has any more.
        ///
        /// - Throws: ``StoreError`` with `keyStoreLocked` or `keyStoreUnavailable`; no error where there is no such key.
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

        private func stored() throws -> CipherKey? {
            let query = item.merging([kSecReturnData: true, kSecMatchLimit: kSecMatchLimitOne]) { $1 }
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            if status == errSecItemNotFound { return nil }
            guard status == errSecSuccess, let data = found as? Data else { throw failure(status) }
            return try KeyText.parse(SecretBytes(data), origin: "the keychain")
        }

        private func store() throws {
            let text = try CipherKey.generated(for: "a new key of the keychain").text.withUnsafeBytes { Data($0) }
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
                    .keyStoreLocked, "the device was not unlocked yet, so it is unknown whether the key \(name) exists",
                    advice: "try again after the first unlock", changed: .nothing)
            }
            return StoreError(
                .keyStoreUnavailable, "the keychain cannot be asked for the key \(name): OSStatus \(status)",
                advice: "check the app's keychain entitlement", changed: .nothing)
        }
    }

    extension KeyProvider where Self == KeychainKeyProvider {
        /// The key in the keychain of an Apple device, which is asked each time the key is.
        ///
        /// - Parameters:
        ///   - name: The name under which the keychain keeps the key.
        ///   - createIfMissing: Whether a new random key is stored where the keychain has none, when a database is to be
        ///     encrypted. A key is never made for a database that is encrypted already.
        public static func keychain(_ name: String, createIfMissing: Bool = false) -> KeychainKeyProvider {
            KeychainKeyProvider(name: name, createIfMissing: createIfMissing)
        }
    }
#endif
