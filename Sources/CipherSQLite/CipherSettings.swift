/// How an encrypted file is laid out: the SQLCipher format, and how much of the header stays readable.
///
/// The defaults of an engine are never relied on: each connection pins the format it means.
/// Source: SQLCipher API, `PRAGMA cipher_compatibility`, `PRAGMA cipher_plaintext_header_size`.
public struct CipherSettings: Sendable, Equatable {
    /// SQLCipher's format: 3 (1024-byte pages, HMAC-SHA1, 64,000 rounds) or 4 (4096-byte pages, HMAC-SHA512, 256,000
    /// rounds).
    public var compatibility: Int
    /// How many bytes of the header stay readable: 0, or 32 where the system must recognise the file (iOS app groups).
    public var plaintextHeaderSize: Int

    /// The format of `compatibility`, by default the newest that the running engine writes.
    public init(compatibility: Int = Engine.current.defaultCompatibility, plaintextHeaderSize: Int = 0) {
        self.compatibility = compatibility
        self.plaintextHeaderSize = plaintextHeaderSize
    }

    /// The digest of a format, for its pages and its key derivation.
    package enum Digest: Sendable { case sha1, sha512 }

    package var digest: Digest { compatibility >= 4 ? .sha512 : .sha1 }
    package var kdfIterations: Int { compatibility >= 4 ? 256_000 : compatibility == 3 ? 64_000 : 4_000 }
    package var pageSize: Int { compatibility >= 4 ? 4096 : 1024 }
    /// Bytes at the end of each page that hold the initialisation vector and the HMAC.
    package var reservedBytes: Int {
        switch compatibility {
        case 4...: 80
        case 2, 3: 48
        default: 16
        }
    }

    /// The pragmas that pin these settings for a file that was given its key, without the word PRAGMA.
    package func pragmas(engine: Engine) -> [String] {
        var statements: [String]
        if engine.hasCompatibilityPragma {
            statements = ["cipher_compatibility = \(compatibility)"]
        } else {
            statements = [
                "cipher_page_size = \(pageSize)",
                "kdf_iter = \(kdfIterations)",
                "cipher_use_hmac = \(compatibility >= 2 ? "ON" : "OFF")",
            ]
        }
        if plaintextHeaderSize > 0 {
            statements.append("cipher_plaintext_header_size = \(plaintextHeaderSize)")
        }
        return statements
    }
}
