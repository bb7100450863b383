package import CipherErrors

extension StoreError {
    /// A key store that answers does not have the key.
    package static func noKey(named name: String, in store: String) -> StoreError {
        StoreError(
            .keyUnavailable, "\(store) has no key named \(name)",
            advice: "restore the key of this database in \(store), or give the right name")
    }
}
