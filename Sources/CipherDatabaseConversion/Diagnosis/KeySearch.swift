internal import CipherErrors
internal import CipherPageOpening
internal import CipherPrimitives
internal import CipherSQLite
internal import CipherSystemFiles

/// Searches for the key of an encrypted file among the readings of a text.
///
/// Raw keys need no derivation. A passphrase is first tried with the derivations of SQLCipher's formats: unchanged, and
/// then in every other reading. After that, it is tried with every number of rounds: unchanged, and finally in the
/// other readings. Each of these attempts is one derivation.
struct KeySearch {
    /// A key that was found to be the file's.
    struct Found {
        let reading: KeyReading
        /// The key of the pages.
        let key: SecretBytes
        /// The derivation of the key from a passphrase; `nil` for a raw key.
        let derivation: Derivation?
        let evidence: PageProbe.Evidence
    }

    struct Derivation: Hashable {
        let digest: CipherSettings.Digest
        let rounds: Int
    }

    private let probe: PageProbe
    private let options: DiagnosisOptions
    private let cancellation: UpgradeCancellation?
    private let path: String
    private let deadline: ContinuousClock.Instant
    private(set) var derivations = 0
    private(set) var rounds = 0
    /// Whether a limit ended the search.
    private(set) var isLimited = false

    init(
        _ probe: PageProbe, _ options: DiagnosisOptions, path: String, _ cancellation: UpgradeCancellation?
    ) {
        self.probe = probe
        self.options = options
        self.path = path
        self.cancellation = cancellation
        deadline = .now + options.timeLimit
    }

    /// The derivations of SQLCipher's formats, the newest first.
    private static let usual = [
        Derivation(digest: .sha512, rounds: 256_000), Derivation(digest: .sha1, rounds: 64_000),
        Derivation(digest: .sha1, rounds: 4_000),
    ]
    /// The derivations that combine the rounds of one format with the digest of another.
    private static let mixed = [CipherSettings.Digest.sha512, .sha256, .sha1].flatMap { digest in
        [4_000, 64_000, 256_000].map { Derivation(digest: digest, rounds: $0) }
    }.filter { !usual.contains($0) }

    /// The numbers of rounds at which other pages are checked too, because page 1 may be damaged.
    private static let round: Set<Int> = [
        1, 2, 1_000, 2_000, 4_000, 5_000, 8_000, 10_000, 12_000, 16_000, 20_000, 32_000, 50_000, 64_000, 100_000,
        120_000, 128_000, 150_000, 200_000, 210_000, 256_000, 300_000, 310_000, 400_000, 500_000, 512_000, 600_000,
        1_000_000,
    ]

    /// Searches for the key.
    ///
    /// - Parameter isDeep: Whether to try numbers of rounds other than those of SQLCipher's formats.
    /// - Throws: ``StoreError`` with the code `cancelled`.
    mutating func run(_ readings: [KeyReading], isDeep: Bool) throws -> Found? {
        for reading in readings where reading.form != .passphrase {
            try checkCancellation()
            let salt = reading.salt ?? probe.salt
            if let evidence = probe.evidence(for: reading.bytes, salt: salt, CipherSettings.Digest.allCases) {
                return Found(reading: reading, key: reading.bytes, derivation: nil, evidence: evidence)
            }
        }
        // A passphrase cannot be tried without the file's salt.
        guard let salt = probe.salt else { return nil }
        let passphrases = readings.filter { $0.form == .passphrase }
        let given = Derivation(digest: options.format.kdfAlgorithm, rounds: options.format.kdfIterations)
        let usual = Self.usual.filter { $0 != given }
        let asGiven = passphrases.filter(\.deviations.isEmpty)
        let others = passphrases.filter { !$0.deviations.isEmpty }
        if let found = try search(asGiven, [given] + usual, salt) { return found }
        if let found = try search(others, [given], salt) { return found }
        if let found = try search(others, usual, salt) { return found }
        guard isDeep else { return nil }
        if let found = try searchRounds(asGiven, salt) { return found }
        if let found = try search(passphrases, Self.mixed.filter { $0 != given }, salt) { return found }
        return try searchRounds(others, salt)
    }

    private mutating func search(
        _ readings: [KeyReading], _ derivations: [Derivation], _ salt: [UInt8]
    ) throws -> Found? {
        for reading in readings {
            for derivation in derivations {
                guard try mayDerive() else { return nil }
                rounds += derivation.rounds
                var isDone = true
                let key = SecretBytes(count: CipherKey.rawKeyLength) { output in
                    isDone = reading.bytes.withUnsafeBytes { passphrase in
                        salt.withUnsafeBytes {
                            options.derive(derivation.digest.function, passphrase, $0, derivation.rounds, output)
                        }
                    }
                }
                guard isDone else { throw KeyError.derivationFailed }
                if let evidence = probe.evidence(for: key, salt: salt, [derivation.digest]) {
                    return Found(reading: reading, key: key, derivation: derivation, evidence: evidence)
                }
            }
        }
        return nil
    }

    /// Tries every number of rounds.
    private mutating func searchRounds(_ readings: [KeyReading], _ salt: [UInt8]) throws -> Found? {
        for reading in readings {
            for digest in [CipherSettings.Digest.sha512, .sha1, .sha256] {
                guard try mayDerive() else { return nil }
                if let found = try searchRounds(reading, digest, salt) { return found }
            }
        }
        return nil
    }

    private mutating func searchRounds(
        _ reading: KeyReading, _ digest: CipherSettings.Digest, _ salt: [UInt8]
    ) throws -> Found? {
        let first = reading.bytes.withUnsafeBytes { passphrase in
            salt.withUnsafeBytes {
                PBKDF2Rounds(digest.function, password: passphrase, salt: $0, keySize: CipherKey.rawKeyLength)
            }
        }
        guard let pass = first else { throw KeyError.derivationFailed }
        defer { rounds += pass.count }
        while pass.count <= options.maximumRounds {
            let key = UnsafeRawBufferPointer(rebasing: pass.key[..<CipherKey.rawKeyLength])
            let isRound = Self.round.contains(pass.count)
            if isRound || probe.opensHeader(key),
                let evidence = probe.evidence(for: SecretBytes(key), salt: salt, [digest])
            {
                return Found(
                    reading: reading, key: SecretBytes(key),
                    derivation: Derivation(digest: digest, rounds: pass.count), evidence: evidence)
            }
            if pass.count.isMultiple(of: 1 << 12) {
                try checkCancellation()
                guard ContinuousClock.now < deadline else {
                    isLimited = true
                    return nil
                }
            }
            guard pass.advance() else { throw KeyError.derivationFailed }
        }
        return nil
    }

    private mutating func mayDerive() throws -> Bool {
        try checkCancellation()
        guard derivations < options.maximumDerivations, ContinuousClock.now < deadline else {
            isLimited = true
            return false
        }
        derivations += 1
        return true
    }

    private func checkCancellation() throws {
        if cancellation?.isCancelled == true { throw Self.cancelled(path) }
    }

    static func cancelled(_ path: String) -> StoreError {
        StoreError(.cancelled, path: path, "the diagnosis was canceled", changed: .nothing)
    }
}
