internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Formats that were not specified: page sizes, rounds, algorithms, and settings that only SQLCipher's pragmas can
/// make.
struct FormatDiagnosisTests {
    static let pageSizes: [CipherSettings] = CipherSettings.everyFormat.filter { $0.compatibility > 1 }.flatMap {
        format in
        [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536].map {
            CipherSettings(compatibility: format.compatibility, pageSize: $0)
        }
    }.filter { $0.fault() == nil }

    @Test("The page size is diagnosed, under passphrases and raw keys", arguments: pageSizes, [false, true])
    func pageSize(settings: CipherSettings, isRaw: Bool) throws {
        let key = isRaw ? "x'\(PlantedFile.digits)'" : PlantedFile.passphrase
        let diagnosis = try PlantedFile(key, settings).diagnose(key)
        try expect(diagnosis, settings, isDerived: !isRaw)
    }

    static let algorithms: [CipherSettings] =
        Engine.current.defaultCompatibility < 4
        ? []
        : CipherSettings.Digest.allCases.flatMap { hmac in
            CipherSettings.Digest.allCases.map { CipherSettings(hmacAlgorithm: hmac, kdfAlgorithm: $0) }
        }

    @Test("The hash functions are diagnosed, under passphrases and raw keys", arguments: algorithms, [false, true])
    func algorithm(settings: CipherSettings, isRaw: Bool) throws {
        let key = isRaw ? "x'\(PlantedFile.digits)'" : PlantedFile.passphrase
        let diagnosis = try PlantedFile(key, settings).diagnose(key)
        try expect(diagnosis, settings, isDerived: !isRaw)
    }

    static let roundCounts: [(compatibility: Int, rounds: Int)] = CipherSettings.everyFormat.flatMap { format in
        [1, 1_777, format.compatibility == 4 ? 64_000 : 256_000].map { (format.compatibility, $0) }
    }

    @Test("The number of rounds is diagnosed, even an unusual one", arguments: roundCounts)
    func rounds(compatibility: Int, rounds: Int) throws {
        let settings = CipherSettings(compatibility: compatibility, kdfIterations: rounds)
        let diagnosis = try PlantedFile(PlantedFile.passphrase, settings).diagnose(PlantedFile.passphrase)
        try expect(diagnosis, settings, isDerived: true)
    }

    @Test("Several causes at once are diagnosed", arguments: CipherSettings.everyFormat.filter { $0.compatibility > 1 })
    func several(format: CipherSettings) throws {
        let settings = CipherSettings(compatibility: format.compatibility, pageSize: 8192, kdfIterations: 1_234)
        let diagnosis = try PlantedFile(PlantedFile.passphrase + "\n", settings).diagnose(PlantedFile.passphrase)
        #expect(diagnosis.kinds.contains(.newline))
        try expect(diagnosis, settings, isDerived: true, besides: [.newline])
    }

    /// The format that is found must open the file, and be described with as few differences as possible.
    private func expect(
        _ diagnosis: Diagnosis, _ settings: CipherSettings, isDerived: Bool, besides: Set<Diagnosis.Kind> = []
    ) throws {
        let format = try #require(diagnosis.format, "\(diagnosis.causes)")
        #expect(format.pageSize == settings.pageSize)
        if isDerived { #expect(format.kdfIterations == settings.kdfIterations) }
        if settings.compatibility > 1 { #expect(format.hmacAlgorithm == settings.hmacAlgorithm) }
        #expect(format.kdfAlgorithm == settings.kdfAlgorithm)
        let isAsGiven =
            format == CipherSettings()
        #expect(diagnosis.kinds.subtracting(besides).isEmpty == isAsGiven, "\(diagnosis.causes)")
        var allowed: Set<Diagnosis.Kind> = [.cipherFormat, .pageSize, .rounds, .algorithm]
        if settings.compatibility == 1 { allowed.insert(.noHMAC) }
        #expect(diagnosis.kinds.subtracting(besides).isSubset(of: allowed), "\(diagnosis.causes)")
        let base = CipherSettings(compatibility: format.compatibility)
        #expect(diagnosis.kinds.contains(.cipherFormat) == (format.compatibility != CipherSettings().compatibility))
        #expect(diagnosis.kinds.contains(.pageSize) == (format.pageSize != base.pageSize))
        if isDerived { #expect(diagnosis.kinds.contains(.rounds) == (format.kdfIterations != base.kdfIterations)) }
    }

    @Test(
        "A file without HMACs is diagnosed, under passphrases and raw keys",
        arguments: [PlantedFile.passphrase, "x'\(PlantedFile.digits)'"])
    func noHMAC(key: String) throws {
        let diagnosis = try PlantedFile(key, pragmas: ["cipher_use_hmac = OFF"]).diagnose(key)
        #expect(diagnosis.kinds.contains(.noHMAC), "\(diagnosis.causes)")
        #expect(diagnosis.kinds.isSubset(of: [.noHMAC, .cipherFormat, .pageSize, .rounds]), "\(diagnosis.causes)")
    }

    @Test(
        "An HMAC with another salt mask or byte order is diagnosed with its pragma",
        .enabled(if: Engine.current.defaultCompatibility >= 4),
        arguments: [
            (UInt8(0), false, "cipher_hmac_salt_mask = \"x'00'\""), (0x5c, false, "cipher_hmac_salt_mask = \"x'5c'\""),
            (0x3a, true, "cipher_hmac_pgno = be"),
        ])
    func hmacDetail(mask: UInt8, bigEndian: Bool, pragma: String) throws {
        let key = "x'\(PlantedFile.digits)'"
        let file = try PlantedFile(key)
        // SQLCipher sets the mask for the whole process, so the test computes the HMACs itself.
        try file.authenticateAgain(CipherSettings(), mask: mask, bigEndian: bigEndian)
        let diagnosis = try file.diagnose(key)
        #expect(diagnosis.kinds == [.hmacDetail], "\(diagnosis.causes)")
        #expect(diagnosis.causes.first?.advice.contains(pragma) == true)
        #expect(diagnosis.format == nil)
    }

    // MARK: Readable headers

    private static let salt = "00112233445566778899aabbccddeeff"

    @Test(
        "A readable header without the salt is diagnosed, and a raw key is recognized as correct",
        .enabled(if: Engine.current.defaultCompatibility >= 4))
    func readableHeader() throws {
        let settings = CipherSettings(plaintextHeaderSize: 32)
        let key = "x'\(PlantedFile.digits)\(Self.salt)'"
        let file = try PlantedFile(key, settings)
        #expect(try file.diagnose(key).kinds == [])
        let raw = try file.diagnose("x'\(PlantedFile.digits)'")
        #expect(raw.kinds == [.saltMissing])
        #expect(raw.causes.first?.detail.contains("the key is correct") == true)
        let passphrase = try file.diagnose(PlantedFile.passphrase)
        #expect(passphrase.kinds == [.saltMissing])
        #expect(passphrase.causes.first?.detail.contains("the key is correct") == false)
        #expect(try file.diagnose("x'\(PlantedFile.digits)\(String(repeating: "a7", count: 16))'").kinds == [.keySalt])
        #expect(try file.diagnose(PlantedFile.digits + Self.salt).kinds == [.rawKeyNotPassphrase])
    }

    @Test(
        "A readable header of a size other than 32 is diagnosed with its pragma",
        .enabled(if: Engine.current.defaultCompatibility >= 4), arguments: [16, 48, 64])
    func otherHeader(size: Int) throws {
        let key = "x'\(PlantedFile.digits)\(Self.salt)'"
        let file = try PlantedFile(key, pragmas: ["cipher_plaintext_header_size = \(size)"])
        let diagnosis = try file.diagnose(key)
        #expect(diagnosis.kinds == [.plaintextHeader], "\(diagnosis.causes)")
        #expect(diagnosis.causes.first?.advice.contains("\(size)") == true)
    }
}
