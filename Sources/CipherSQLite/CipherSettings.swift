/// The layout of an encrypted file: the SQLCipher format, deviations from its defaults, and how much of the header
/// stays readable.
///
/// Each connection sets every value explicitly, because other code in the process can change SQLCipher's defaults.
/// Source: SQLCipher API, `PRAGMA cipher_compatibility`, `PRAGMA cipher_page_size`, `PRAGMA kdf_iter`, `PRAGMA
/// cipher_hmac_algorithm`, `PRAGMA cipher_kdf_algorithm`, `PRAGMA cipher_plaintext_header_size`.
public struct CipherSettings: Sendable, Equatable {
    /// A hash function for the authentication of pages and the derivation of keys.
    public enum Digest: String, Sendable, CaseIterable {
        /// SHA-1, which formats 1 to 3 use.
        case sha1
        /// SHA-256.
        case sha256
        /// SHA-512, which format 4 uses.
        case sha512
    }

    /// SQLCipher's format, 1 to 4.
    ///
    /// Formats 3 (1024-byte pages, HMAC-SHA1, 64,000 rounds) and 4 (4096-byte pages, HMAC-SHA512, 256,000 rounds) can
    /// be written, and the older ones can be opened.
    public let compatibility: Int
    /// The size of a page in bytes.
    public let pageSize: Int
    /// The number of PBKDF2 rounds that derive a key from a passphrase.
    public let kdfIterations: Int
    /// The hash function of the pages' HMAC; format 1 has none.
    public let hmacAlgorithm: Digest
    /// The hash function of PBKDF2.
    public let kdfAlgorithm: Digest
    /// The number of header bytes that stay readable: 0, or 32 if the system must recognize the file (iOS app groups).
    public var plaintextHeaderSize: Int

    /// Creates the settings for a format, by default the newest that the running engine writes.
    ///
    /// A parameter that is omitted or `nil` takes the format's default.
    public init(
        compatibility: Int = Engine.current.defaultCompatibility, pageSize: Int? = nil, kdfIterations: Int? = nil,
        hmacAlgorithm: Digest? = nil, kdfAlgorithm: Digest? = nil, plaintextHeaderSize: Int = 0
    ) {
        let format = CipherFormat.numbered(compatibility)
        self.compatibility = compatibility
        self.pageSize = pageSize ?? format.pageSize
        self.kdfIterations = kdfIterations ?? format.kdfIterations
        self.hmacAlgorithm = hmacAlgorithm ?? format.hmac ?? .sha1
        self.kdfAlgorithm = kdfAlgorithm ?? format.kdf
        self.plaintextHeaderSize = plaintextHeaderSize
    }

    /// Returns every format of an engine whose pages are authenticated, with its defaults, the newest first.
    ///
    /// A file in format 1 can be forged without its key, so that format is used only if the caller names it.
    package static func authenticated(by engine: Engine = .current) -> [CipherSettings] {
        CipherFormat.all.reversed().filter { $0.hmac != nil && $0.number <= engine.defaultCompatibility }
            .map { CipherSettings(compatibility: $0.number) }
    }

    /// The format that CipherStore's own code for pages reads and writes.
    package static let ownCode = CipherSettings(compatibility: 4)

    /// What the format has.
    package var traits: CipherFormat { .numbered(compatibility) }

    /// Whether anyone can read and change a part of the header.
    package var hasReadableHeader: Bool { plaintextHeaderSize > 0 }

    /// Whether each page has an HMAC; format 1 has none.
    ///
    /// Source: SQLCipher Design, "Per-Page MAC".
    package var isAuthenticated: Bool { traits.hmac != nil }

    /// The number of bytes at the end of each page for the initialization vector and the HMAC, in whole AES blocks.
    package var reservedBytes: Int {
        guard isAuthenticated else { return 16 }
        return switch hmacAlgorithm {
        case .sha1, .sha256: 48
        case .sha512: 80
        }
    }

    /// Returns the pragmas, without the word PRAGMA, that set these values for a file after its key was set.
    package func pragmas(engine: Engine) -> [String] {
        guard engine.hasCompatibilityPragma else {
            return [
                "cipher_page_size = \(pageSize)", "kdf_iter = \(kdfIterations)",
                "cipher_use_hmac = \(isAuthenticated ? "ON" : "OFF")",
            ]
        }
        return [
            "cipher_compatibility = \(compatibility)", "cipher_page_size = \(pageSize)", "kdf_iter = \(kdfIterations)",
            "cipher_hmac_algorithm = HMAC_\(hmacAlgorithm.rawValue.uppercased())",
            "cipher_kdf_algorithm = PBKDF2_HMAC_\(kdfAlgorithm.rawValue.uppercased())",
            "cipher_plaintext_header_size = \(plaintextHeaderSize)",
        ]
    }
}

extension CipherSettings {
    /// Whether the running engine writes files with these settings.
    package var canBeWritten: Bool { traits.isWritten && fault() == nil }

    /// Returns the reason that no file can have these settings; `nil` if a file can have them.
    ///
    /// - Parameter newest: The newest format that the engine writes.
    package func fault(newest: Int = Engine.current.defaultCompatibility) -> String? {
        guard (1...newest).contains(compatibility) else {
            return "this SQLCipher library supports cipher formats 1 to \(newest)"
        }
        guard (512...65_536).contains(pageSize), pageSize & (pageSize - 1) == 0 else {
            return "a page size must be a power of two from 512 to 65536 bytes"
        }
        // SQLite requires this much usable space on each page. Source: "Database File Format", section 1.3.4.
        guard pageSize - reservedBytes >= 480 else {
            return "a page of \(pageSize) bytes has no room for its HMAC; the minimum page size is 1024 bytes"
        }
        guard (1...Int(Int32.max)).contains(kdfIterations) else {
            return "the number of PBKDF2 rounds must be at least 1"
        }
        guard traits.choosesDigests || (hmacAlgorithm == .sha1 && kdfAlgorithm == .sha1) else {
            return "cipher formats before 4 support only SHA-1"
        }
        guard plaintextHeaderSize == 0 || (plaintextHeaderSize == 32 && traits.canHaveReadableHeader) else {
            return "the plaintext header size must be 0, or 32 with cipher format 4"
        }
        return nil
    }
}
