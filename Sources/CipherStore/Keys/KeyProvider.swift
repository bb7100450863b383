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

extension KeyProvider {
    /// Asks for the key and gives every failure a type.
    func checkedKey(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        do {
            return try key(for: purpose, database: database)
        } catch let error as StoreError {
            throw error
        } catch let error as KeyError {
            throw StoreError(error, origin: "the answer of the key provider", path: database)
        } catch {
            // What a provider says of its own failure is not repeated: it might quote the key.
            throw StoreError(
                .keyUnavailable, path: database, "the key provider failed with \(type(of: error))",
                advice: "see to the provider and try again; nothing was changed")
        }
    }
}
