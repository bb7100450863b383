internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
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

    /// Diagnoses, and checks that nothing was changed and no key is shown.
    func diagnose(
        _ text: [UInt8]?, _ format: CipherSettings = CipherSettings(), rounds: Int = 3_000, derivations: Int = 1_000
    ) throws -> Diagnosis {
        var options = DiagnosisOptions()
        options.maximumDerivations = derivations
        options.format = format
        options.maximumRounds = rounds
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
