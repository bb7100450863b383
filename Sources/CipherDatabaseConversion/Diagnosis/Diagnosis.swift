public import CipherErrors
package import CipherPrimitives
public import CipherSQLite

/// The reasons why a database does not open with a key, and the key form and format that open it.
///
/// It contains no key and no stored value.
public struct Diagnosis: Sendable {
    /// The kind of a cause that prevents a database from being opened.
    public enum Kind: String, Sendable, Codable, CaseIterable {
        // How the text of the key became the key of the file.
        /// The text is the file's raw key, but was passed as a passphrase.
        case rawKeyNotPassphrase
        /// The text is the file's passphrase, but was passed as a raw key.
        case passphraseNotRawKey
        /// The passphrase lacks a newline at its end, or has one that is not part of the file's passphrase.
        case newline
        /// The passphrase lacks a NUL at its end, or has one that is not part of the file's passphrase.
        case nul
        /// The passphrase lacks white space at its start or end, or has some that is not part of the file's passphrase.
        case whitespace
        /// The passphrase lacks quotes, or has quotes that are not part of the file's passphrase.
        case quotes
        /// The hexadecimal digits of the file's passphrase are in the other case.
        case hexCase
        /// The text is the file's key encoded as hexadecimal digits or base64, or the file's key is the text encoded in
        /// that way.
        case encodedKey
        /// The passphrase lacks a byte order mark, or has one that is not part of the file's passphrase.
        case byteOrderMark
        /// The file's passphrase is the same text in another encoding.
        case textEncoding
        /// The salt that was passed with the raw key is not the file's.
        case keySalt
        // How the file is encrypted.
        /// The file has a SQLCipher format other than the one in the options.
        case cipherFormat
        /// The file has a page size other than that of the format in the options.
        case pageSize
        /// The key derivation uses a number of rounds other than that of the format in the options.
        case rounds
        /// The pages' HMAC or the key derivation uses a hash function other than that of the format in the options.
        case algorithm
        /// The pages have no HMAC.
        case noHMAC
        /// The HMAC uses a salt mask or a byte order of the page number that only SQLCipher's pragmas can set.
        case hmacDetail
        /// Part of the header is readable, so the salt is not in the file and must come with the key.
        case plaintextHeader
        /// The file does not contain its salt, and the key does not include it.
        case saltMissing
        // The kind of file.
        /// The file is not encrypted.
        case plaintext
        /// The file has 0 bytes.
        case empty
        /// The path is that of a folder, a device or something similar.
        case notAFile
        /// The file is not a database.
        case notADatabase
        /// The file is a database that was encrypted by something other than SQLCipher.
        case otherEncryption
        /// The first page is damaged, but other pages are intact.
        case damagedFirstPage
        /// Pages other than the first are damaged.
        case damagedPages
        /// The file is truncated.
        case truncated
        // The files beside it.
        /// The `-wal` belongs to another file, another key or another copy.
        case staleLog
        /// The `-journal` belongs to another file, another key or another copy.
        case staleJournal
        /// The journal of a writer that crashed must be rolled back first.
        case hotJournal
        /// An interrupted recovery has set the `-wal` or `-journal` aside, which must be restored first.
        case setAsideSidecar
        // Causes that cannot be determined.
        /// No key was passed, and the cause cannot be determined without one.
        case keyMissing
        /// The file has another key or another encryption, or is not a database: encrypted bytes look random.
        case undetermined
    }

    /// A cause with its description.
    public struct Cause: Sendable, Encodable {
        /// The kind of the cause, for programs.
        public let kind: Kind
        /// A description of what was found.
        public let detail: String
        /// The advice on what to do next.
        public let advice: String
        /// The corresponding error code of this library.
        public var code: StoreError.Code { kind.code }

        enum CodingKeys: String, CodingKey { case kind, detail, advice }
    }

    /// The path of the database, without symbolic links.
    public let path: String
    /// The file's size in bytes.
    public let size: Int64
    /// The causes that prevent the file from being opened with the key and format that were passed, the most serious
    /// first; empty if the file opens.
    public internal(set) var causes: [Cause] = []
    /// The form of the key that opens the file; `nil` if none was found, or none is needed.
    public internal(set) var keyForm: CipherKey.Form?
    /// The cipher format that opens the file; `nil` if none was found, or ``CipherSettings`` cannot express it.
    public internal(set) var format: CipherSettings?
    /// The number of keys that were derived from passphrases.
    public internal(set) var derivations = 0
    /// The number of rounds of PBKDF2 that these derivations took.
    public internal(set) var rounds = 0
    /// Whether every possibility was tried, within the limits of the options.
    public internal(set) var isComplete = true
    /// The wall-clock time in seconds.
    public internal(set) var seconds = 0.0

    init(path: String, size: Int64) {
        self.path = path
        self.size = size
    }

    mutating func add(_ kind: Kind, _ detail: String, _ advice: String) {
        guard !causes.contains(where: { $0.kind == kind }) else { return }
        causes.append(Cause(kind: kind, detail: detail, advice: advice))
    }
}

/// The options of a diagnosis, which limit what it tries and how long it takes.
public struct DiagnosisOptions: Sendable {
    /// The cipher format that the file is believed to have.
    ///
    /// The default is the newest format that the engine writes.
    public var format = CipherSettings()
    /// The maximum number of keys to derive.
    public var maximumDerivations = 1_000
    /// The maximum number of rounds of PBKDF2 to search.
    ///
    /// Every number up to it is tried.
    public var maximumRounds = 1_000_000
    /// The maximum wall-clock time for the search for a key; the check of all pages may take the same time again.
    public var timeLimit: Duration = .seconds(60)
    /// The function that derives a key from a passphrase.
    package var derive: KeyDerivation = Cryptography.pbkdf2

    /// Derives a key by PBKDF2 from a password, a salt and a number of rounds; `false` if it fails.
    package typealias KeyDerivation =
        @Sendable (HashFunction, UnsafeRawBufferPointer, UnsafeRawBufferPointer, Int, UnsafeMutableRawBufferPointer) ->
        Bool

    /// Creates the default options.
    public init() {}
}

extension Diagnosis: Encodable {
    private enum CodingKeys: String, CodingKey {
        case path, size, causes, keyForm, format, derivations, rounds, isComplete, seconds
    }

    private enum FormatKeys: String, CodingKey {
        case cipherCompatibility, pageSize, kdfIterations, hmacAlgorithm, kdfAlgorithm, plaintextHeaderSize
    }

    /// Writes all fields.
    ///
    /// The format is written with the names of its settings.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(path, forKey: .path)
        try values.encode(size, forKey: .size)
        try values.encode(causes, forKey: .causes)
        try values.encodeIfPresent(keyForm.map(String.init(describing:)), forKey: .keyForm)
        if let format {
            var settings = values.nestedContainer(keyedBy: FormatKeys.self, forKey: .format)
            try settings.encode(format.compatibility, forKey: .cipherCompatibility)
            try settings.encode(format.pageSize, forKey: .pageSize)
            try settings.encode(format.kdfIterations, forKey: .kdfIterations)
            try settings.encode(format.hmacAlgorithm.rawValue, forKey: .hmacAlgorithm)
            try settings.encode(format.kdfAlgorithm.rawValue, forKey: .kdfAlgorithm)
            try settings.encode(format.plaintextHeaderSize, forKey: .plaintextHeaderSize)
        }
        try values.encode(derivations, forKey: .derivations)
        try values.encode(rounds, forKey: .rounds)
        try values.encode(isComplete, forKey: .isComplete)
        try values.encode(seconds, forKey: .seconds)
    }
}

extension Diagnosis.Kind {
    /// The code of the error that an opening would throw.
    var code: StoreError.Code {
        switch self {
        case .saltMissing, .plaintextHeader: .saltMissing
        case .plaintext: .unexpectedPlaintext
        case .notAFile: .notAFile
        case .empty, .notADatabase, .damagedFirstPage, .damagedPages, .truncated: .corrupt
        case .staleLog, .staleJournal: .staleSidecar
        case .hotJournal, .setAsideSidecar: .needsRecovery
        case .keyMissing: .keyUnavailable
        default: .keyDoesNotFit
        }
    }
}
