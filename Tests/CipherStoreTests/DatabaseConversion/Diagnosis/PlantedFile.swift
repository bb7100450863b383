internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherPrimitives
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// A database that does not open with a key, for a known reason.
struct PlantedFile {
    let folder: TemporaryFolder
    let path: String

    static let rows = """
        CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT, payload BLOB); CREATE INDEX note_body ON note(body);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
        INSERT INTO note SELECT i, 'a body of some length, number ' || i, zeroblob(i % 90) FROM n;
        """
    static let passphrase = "correct horse battery staple"
    static let digits = String(repeating: "5eC2e7", count: 10) + "ab1d"

    /// - Parameters:
    ///   - key: The bytes that `sqlite3_key` gets.
    ///   - pragmas: The settings after the key.
    init(
        _ key: [UInt8]?, _ settings: CipherSettings = CipherSettings(), pragmas: [String] = [], unclosed: Bool = false,
        script: String = PlantedFile.rows
    ) throws {
        folder = try TemporaryFolder(inMemory: true)
        path = folder.path("app.db")
        let form: CipherKey.Form =
            switch key?.count {
            case 67 where key?.starts(with: "x'".utf8) == true: .raw
            case 99 where key?.starts(with: "x'".utf8) == true: .rawWithSalt
            default: .passphrase
            }
        try LegacyFile.write(
            path, key: key.map { CipherKey(form: form, keyBytes: SecretBytes($0)) }, settings: settings,
            unclosed: unclosed
        ) { connection in
            // With the same salt in every file, the diagnoses derive the same keys, which are remembered.
            if form == .passphrase, Engine.current.defaultCompatibility >= 4 {
                try connection.execute("PRAGMA cipher_salt = \"x'7d41c5f0a2938e6b5f1d0c8834e7a9b2'\"")
            }
            for pragma in pragmas { try connection.execute(SQL(text: "PRAGMA \(pragma)")) }
            try connection.executeScript(text: script)
        }
    }

    init(_ key: String, _ settings: CipherSettings = CipherSettings(), pragmas: [String] = []) throws {
        try self.init(Array(key.utf8), settings, pragmas: pragmas)
    }

    /// Makes a file with these bytes.
    init(bytes: [UInt8]) throws {
        folder = try TemporaryFolder(inMemory: true)
        path = folder.path("app.db")
        try Data(bytes).write(to: URL(filePath: path))
    }

    /// Changes the bytes of the file, or of a file beside it.
    func change(_ ending: String = "", _ body: (inout Data) -> Void) throws {
        let url = URL(filePath: path + ending)
        var data = try Data(contentsOf: url)
        body(&data)
        try data.write(to: url)
    }

    /// Computes the HMACs of the file's pages again, with a mask or an order of bytes that no format uses.
    ///
    /// The key is ``digits``.
    func authenticateAgain(_ settings: CipherSettings, mask: UInt8, bigEndian: Bool) throws {
        let digits = Array(Self.digits)
        let key = stride(from: 0, to: 64, by: 2).map { UInt8(String(digits[$0...($0 + 1)]), radix: 16) ?? 0 }
        func function(_ digest: CipherSettings.Digest) -> HashFunction {
            switch digest {
            case .sha1: .sha1
            case .sha256: .sha256
            case .sha512: .sha512
            }
        }
        let (hash, size) = (function(settings.hmacAlgorithm), settings.pageSize)
        let end = size - settings.reservedBytes + 16
        try change { file in
            var hmacKey = [UInt8](repeating: 0, count: 32)
            let salt = file.prefix(16).map { $0 ^ mask }
            _ = hmacKey.withUnsafeMutableBytes { output in
                key.withUnsafeBytes { key in
                    salt.withUnsafeBytes {
                        Cryptography.pbkdf2(
                            function(settings.kdfAlgorithm), password: key, salt: $0, rounds: 2, into: output)
                    }
                }
            }
            for number in 1...(file.count / size) {
                let start = (number - 1) * size
                let page = Array(file[(start + (number == 1 ? 16 : 0))..<(start + end)])
                let count = UInt32(number)
                let place = withUnsafeBytes(of: bigEndian ? count.bigEndian : count.littleEndian) { Array($0) }
                var mac = [UInt8](repeating: 0, count: hash.digestSize)
                guard let hmac = hmacKey.withUnsafeBytes({ HMAC(hash, key: $0) }), hmac.begin(),
                    hmac.update(page, count: page.count), hmac.update(place, count: 4), hmac.finish(into: &mac)
                else { return }
                file.replaceSubrange((start + end)..<(start + end + mac.count), with: mac)
            }
        }
    }

    /// Diagnoses, and checks that nothing was changed and no key is shown.
    func diagnose(
        _ text: [UInt8]?, _ format: CipherSettings = CipherSettings(), rounds: Int = 3_000, derivations: Int = 1_000
    ) throws -> Diagnosis {
        var options = DiagnosisOptions()
        options.maximumDerivations = derivations
        // Only the number of derivations ends a search, however busy the machine is.
        options.timeLimit = .seconds(3_600)
        options.format = format
        options.maximumRounds = rounds
        options.derive = { RememberedKeys.shared.derive($0, password: $1, salt: $2, rounds: $3, into: $4) }
        let before = try FolderDigest(folder.url)
        let diagnosis = try Diagnostician(DatabasePaths(path), options, isAlone: true)
            .run(keyText: text.map { text in { SecretBytes(text) } })
        #expect(try FolderDigest(folder.url) == before, "the folder was changed")
        let told = String(decoding: try JSONEncoder().encode(diagnosis), as: UTF8.self)
        for secret in [Self.passphrase, Self.digits, Self.digits.lowercased()] {
            #expect(!told.contains(secret), "a key was shown")
        }
        return diagnosis
    }

    func diagnose(
        _ text: String, _ format: CipherSettings = CipherSettings(), rounds: Int = 3_000, derivations: Int = 1_000
    ) throws -> Diagnosis {
        try diagnose(Array(text.utf8), format, rounds: rounds, derivations: derivations)
    }
}

extension Diagnosis {
    var kinds: Set<Kind> { Set(causes.map(\.kind)) }
}
