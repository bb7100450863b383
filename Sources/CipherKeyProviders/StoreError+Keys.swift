package import CipherErrors

extension StoreError {
    /// Creates the error for a key store that is available but does not have the key.
    package static func noKey(named name: String, in store: String) -> StoreError {
        StoreError(
            .keyUnavailable, "\(store) has no key named \(name)",
            advice: "restore the key of this database in \(store), or correct the key's name")
    }
}
