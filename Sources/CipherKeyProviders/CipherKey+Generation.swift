internal import CipherErrors
package import CipherSQLite

extension CipherKey {
    /// A new random key, for every provider that makes one.
    ///
    /// - Parameter origin: What it is for, in words that may stand in an error, such as `a new key file`.
    /// - Throws: ``StoreError`` with `keyUnavailable`.
    package static func generated(for origin: String) throws -> CipherKey {
        do {
            return try .random()
        } catch let error as KeyError {
            throw StoreError(error, origin: origin)
        }
    }
}
