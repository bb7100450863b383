internal import CipherErrors
public import CipherSQLite

/// A provider whose key comes from a closure of the app.
public struct ClosureKeyProvider: KeyProvider {
    private let body: @Sendable (KeyPurpose, String) throws -> CipherKey

    package init(_ body: @escaping @Sendable (_ purpose: KeyPurpose, _ database: String) throws -> CipherKey) {
        self.body = body
    }

    /// Returns the closure's key.
    ///
    /// - Throws: ``StoreError`` with the code `keyMalformed` if the closure throws a `KeyError`; all other errors
    ///   thrown by the closure, unchanged.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        do {
            return try body(purpose, database)
        } catch let error as KeyError {
            throw StoreError(error, origin: "the app's key provider")
        }
    }
}

extension KeyProvider where Self == ClosureKeyProvider {
    /// Returns a provider that requests its key from a closure, which receives the purpose and the path of the
    /// database.
    public static func closure(
        _ body: @escaping @Sendable (_ purpose: KeyPurpose, _ database: String) throws -> CipherKey
    ) -> ClosureKeyProvider {
        ClosureKeyProvider(body)
    }
}
