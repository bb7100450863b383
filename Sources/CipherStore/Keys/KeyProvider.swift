public import CipherSQLite

/// Where the key of a database comes from.
///
/// A provider is asked anew whenever a key is needed, and holds none itself.
public protocol KeyProvider: Sendable {
    /// Gives the key.
    ///
    /// - Parameters:
    ///   - purpose: Whether a new key may be made. A key that is made has been stored durably before this returns.
    ///   - database: The path of the database, for providers that keep a key for each.
    /// - Throws: ``StoreError`` with `keyUnavailable`, `keyMalformed` or `keyFileInsecure`, or an error of the
    ///   provider's own, which reaches the caller as the cause.
    func key(for purpose: KeyPurpose, database: String) throws -> CipherKey
}

/// What a key is asked for.
public enum KeyPurpose: Sendable, Equatable {
    /// To open a file that is encrypted: a provider must never make a key for it.
    case existing
    /// To encrypt a file: the first try, or a retry after a crash, which may find the key made already.
    case createOrExisting
}
