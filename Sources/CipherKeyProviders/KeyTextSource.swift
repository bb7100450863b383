package import CipherPrimitives
internal import CipherSQLite

/// A provider that reads a key's text and can return it as found, even if it is not a valid key.
package protocol KeyTextSource: KeyProvider {
    /// Returns the bytes as stored, including any surrounding newline or byte order mark.
    ///
    /// - Throws: The same errors as ``KeyProvider/key(for:database:)``, except those for text that is not a valid key.
    func keyText(database: String) throws -> SecretBytes
}

extension KeyProvider {
    /// Returns the key's stored text if the provider reads text, otherwise the text of the key that it returns.
    package func diagnosableText(database: String) throws -> SecretBytes {
        if let source = self as? any KeyTextSource { return try source.keyText(database: database) }
        return try checkedKey(for: .existing, database: database).text
    }
}

extension TimeLimitedKeyProvider: KeyTextSource {
    package func keyText(database: String) throws -> SecretBytes {
        try wait(database) { try provider.diagnosableText(database: database) }
    }
}
