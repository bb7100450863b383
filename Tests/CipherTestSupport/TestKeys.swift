public import CipherKeyProviders
public import CipherSQLite

/// Keys for tests, and a provider that always returns the same key.
public enum TestKeys {
    /// A raw key, which needs no derivation.
    public static func raw(_ byte: UInt8 = 7) throws -> CipherKey {
        try .raw(SecretBytes([UInt8](repeating: byte, count: CipherKey.rawKeyLength)))
    }

    /// A raw key with its salt.
    public static func rawWithSalt() throws -> CipherKey { try rawWithSalt(9) }

    /// A raw key that repeats one byte, with the same salt.
    public static func rawWithSalt(_ byte: UInt8) throws -> CipherKey {
        try .raw(
            SecretBytes([UInt8](repeating: byte, count: CipherKey.rawKeyLength)),
            salt: SecretBytes((1...16).map(UInt8.init)))
    }

    /// A raw key in the notation of key files, or a raw key with its salt if it has 48 bytes.
    public static func text(_ byte: UInt8 = 7, count: Int = CipherKey.rawKeyLength) -> String {
        let digits = String(byte, radix: 16)
        return "x'" + String(repeating: (digits.count < 2 ? "0" : "") + digits, count: count) + "'"
    }

    /// A passphrase.
    public static func passphrase() throws -> CipherKey { try .passphrase("correct horse battery staple") }

    /// Returns the key that `make` makes, for every purpose.
    public static func provider(
        _ make: @escaping @Sendable () throws -> CipherKey = { try raw() }
    ) -> ClosureKeyProvider {
        ClosureKeyProvider { _, _ in try make() }
    }
}
