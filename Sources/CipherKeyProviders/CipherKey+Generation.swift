internal import CipherErrors
package import CipherSQLite

extension CipherKey {
    /// Returns a new random key, for every provider that creates keys.
    ///
    /// - Parameter origin: What the key is for, in words for an error message, such as `a new key file`.
    /// - Throws: ``StoreError`` with the code `keyUnavailable`.
    package static func generated(for origin: String) throws -> CipherKey {
        do {
            return try .random()
        } catch let error as KeyError {
            throw StoreError(error, origin: origin)
        }
    }
}
