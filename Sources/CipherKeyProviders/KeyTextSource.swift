package import CipherPrimitives
internal import CipherSQLite

/// A provider that reads the text of a key, which can be looked at as it was found, also where no key can be read from it.
package protocol KeyTextSource: KeyProvider {
    /// The bytes as they are stored, with whatever newline or mark is about them.
    ///
    /// - Throws: What ``KeyProvider/key(for:database:)`` throws, other than of a text that is no key.
    func keyText(database: String) throws -> SecretBytes
}

extension KeyProvider {
    /// The text of the key, as it is stored where the provider reads text; else that of the key that it gives.
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
