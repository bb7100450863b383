public import CipherErrors
public import CipherSQLite

/// Why a database does not open with a key, and what opens it.
///
/// Contains no key and no stored value.
public struct Diagnosis: Sendable {
    /// One thing that keeps a database from being opened.
    public enum Kind: String, Sendable, Codable, CaseIterable {
        // How the text of the key became the key of the file.
        /// The text is the file's raw key, and was given as a passphrase.
        case rawKeyNotPassphrase
        /// The text is the file's passphrase, and was given as a raw key.
        case passphraseNotRawKey
        /// A newline at the end belongs to the file's passphrase or does not, other than was given.
        case newline
        /// A NUL at the end belongs to the file's passphrase or does not, other than was given.
        case nul
        /// White space at an end belongs to the file's passphrase or does not, other than was given.
        case whitespace
        /// Quotes belong to the file's passphrase or do not, other than was given.
        case quotes
        /// The hexadecimal digits of the file's passphrase have the other case.
        case hexCase
        /// The file's key is what the text encodes in hexadecimal digits or base64, or the other way round.
        case encodedKey
        /// A byte order mark belongs to the file's passphrase or does not, other than was given.
        case byteOrderMark
        /// The file's passphrase is the same text in another encoding.
        case textEncoding
        /// The salt that came with the raw key is not the file's.
        case keySalt
        // How the file is encrypted.
        /// Another of SQLCipher's formats than was given.
        case cipherFormat
        /// Another size of pages.
        case pageSize
        /// Another number of rounds of the key derivation.
        case rounds
        /// Another hash function of the pages' HMAC or of the key derivation.
        case algorithm
        /// The pages have no HMAC.
        case noHMAC
        /// The HMAC has a salt mask or an order of the page number's bytes that only SQLCipher's pragmas set.
        case hmacDetail
        /// Part of the header is readable, so the salt is not in the file and must come with the key.
        case plaintextHeader
        /// The file does not hold its salt, and the key does not bring it.
        case saltMissing
        // What the file is.
        /// The file is not encrypted.
        case plaintext
        /// A file of 0 bytes.
        case empty
        /// A folder, a device or something similar.
        case notAFile
        /// Something other than a database.
        case notADatabase
        /// A database that was encrypted by something other than SQLCipher.
        case otherEncryption
        /// The first page is damaged, but others are intact.
        case damagedFirstPage
        /// Other pages are damaged.
        case damagedPages
        /// The file is truncated.
        case truncated
        // What lies beside it.
        /// The `-wal` belongs to another file, another key or another copy.
        case staleLog
        /// The `-journal` belongs to another file, another key or another copy.
        case staleJournal
        /// The journal of a writer that crashed must be rolled back first.
        case hotJournal
        // What cannot be told.
        /// No key was given, and only a key tells.
        case keyMissing
        /// Another key, another encryption, or no database at all: encrypted bytes look like random ones.
        case undetermined
    }

    /// A cause, with its description.
    public struct Cause: Sendable, Encodable {
        /// What it is, for programs.
        public let kind: Kind
        /// What was found.
        public let detail: String
        /// What to do next.
        public let advice: String
        /// The same for programs that know the errors of this library.
        public var code: StoreError.Code { kind.code }

        enum CodingKeys: String, CodingKey { case kind, detail, advice }
    }

    /// The database, without symbolic links.
    public let path: String
    /// The file's size in bytes.
    public let size: Int64
    /// What keeps the file from being opened with the key and format that were given, the gravest first; empty where
    /// nothing does.
    public internal(set) var causes: [Cause] = []
    /// The form of the key that opens the file; `nil` if none was found, or none is needed.
    public internal(set) var keyForm: CipherKey.Form?
    /// The cipher format that opens the file; `nil` if none was found, or ``CipherSettings`` cannot tell it.
    public internal(set) var format: CipherSettings?
    /// How many keys were derived from passphrases.
    public internal(set) var derivations = 0
    /// How many rounds of PBKDF2 that took.
    public internal(set) var rounds = 0
    /// Whether everything was tried, within the limits of the options.
    public internal(set) var isComplete = true
    /// The wall time, in seconds.
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

/// What a diagnosis tries, and for how long.
public struct DiagnosisOptions: Sendable {
    /// The cipher format that the file is believed to have, by default the newest that the engine writes.
    public var format = CipherSettings()
    /// How many keys are derived at most.
    public var maximumDerivations = 1_000
    /// The most rounds of PBKDF2 that are searched: each number up to it is tried.
    public var maximumRounds = 1_000_000
    /// The most wall time of the search for a key, and again of the check of all pages.
    public var timeLimit: Duration = .seconds(60)

    /// The defaults.
    public init() {}
}

extension Diagnosis: Encodable {
    private enum CodingKeys: String, CodingKey {
        case path, size, causes, keyForm, format, derivations, rounds, isComplete, seconds
    }

    private enum FormatKeys: String, CodingKey {
        case cipherCompatibility, pageSize, kdfIterations, hmacAlgorithm, kdfAlgorithm, plaintextHeaderSize
    }

    /// Writes everything, the format by the names of its settings.
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
    /// The error that an opening would end with.
    var code: StoreError.Code {
        switch self {
        case .saltMissing, .plaintextHeader: .saltMissing
        case .plaintext: .unexpectedPlaintext
        case .notAFile: .notAFile
        case .empty, .notADatabase, .damagedFirstPage, .damagedPages, .truncated: .corrupt
        case .staleLog, .staleJournal: .staleSidecar
        case .hotJournal: .needsRecovery
        case .keyMissing: .keyUnavailable
        default: .keyDoesNotFit
        }
    }
}
