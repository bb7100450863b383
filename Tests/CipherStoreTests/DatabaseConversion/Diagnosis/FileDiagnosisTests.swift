internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Files that are damaged, truncated or of another kind, or that have another file's log beside them.
struct FileDiagnosisTests {
    private static let keys = [PlantedFile.passphrase, "x'\(PlantedFile.digits)'"]
    private static let raw = "x'\(PlantedFile.digits)'"
    private static let other = "x'\(String(repeating: "0f", count: 32))'"

    static let formats = CipherSettings.everyFormat

    // MARK: Damage

    @Test("A file truncated within a page is diagnosed, wherever the cut is", arguments: keys, formats)
    func cut(key: String, format: CipherSettings) throws {
        let size = format.pageSize
        for length in [100, size - 1, size + 1, 3 * size, 5 * size + 17] {
            let file = try PlantedFile(key, format)
            try file.change { $0 = $0.prefix(length) }
            let diagnosis = try file.diagnose(key, format)
            #expect(diagnosis.kinds == [.truncated], "\(length): \(diagnosis.causes)")
        }
    }

    @Test(
        "A damaged first page is distinguished from another key", arguments: keys,
        formats.filter { $0.compatibility > 1 })
    func firstPage(key: String, format: CipherSettings) throws {
        for range in [16..<200, format.pageSize - 90..<format.pageSize, 300..<310, 16..<format.pageSize] {
            let file = try PlantedFile(key, format)
            try file.change { for index in range { $0[index] ^= 0x5a } }
            let diagnosis = try file.diagnose(key, format)
            #expect(diagnosis.kinds == [.damagedFirstPage], "\(range): \(diagnosis.causes)")
        }
    }

    @Test("A first page of zeros is diagnosed as damaged, with a lost salt", arguments: keys, formats)
    func zeroedFirstPage(key: String, format: CipherSettings) throws {
        let file = try PlantedFile(key, format)
        try file.change { for index in 0..<format.pageSize { $0[index] = 0 } }
        let diagnosis = try file.diagnose(key, format)
        #expect(diagnosis.kinds == [.damagedFirstPage], "\(diagnosis.causes)")
    }

    @Test("A changed salt is diagnosed under a raw key", arguments: formats)
    func changedSalt(format: CipherSettings) throws {
        let file = try PlantedFile(Self.raw, format)
        try file.change { for index in 0..<16 { $0[index] ^= UInt8(index + 1) } }
        // Without HMACs, the salt has no meaning for a raw key.
        let kinds: Set<Diagnosis.Kind> = format.compatibility == 1 ? [] : [.damagedFirstPage]
        #expect(try file.diagnose(Self.raw, format).kinds == kinds)
    }

    @Test("Damage to other pages is diagnosed with the page numbers", arguments: keys)
    func otherPages(key: String) throws {
        let file = try PlantedFile(key)
        let size = CipherSettings().pageSize
        try file.change { $0[4 * size + 100] ^= 1 }
        let diagnosis = try file.diagnose(key)
        #expect(diagnosis.kinds == [.damagedPages])
        #expect(diagnosis.causes.first?.detail.contains("page 5") == true)
        try file.change { for index in 2 * size..<3 * size { $0[index] = 0 } }
        #expect(try file.diagnose(key).causes.first?.detail.contains("page 5") == true)
        try file.change { $0[4 * size + 100] ^= 1 }
        #expect(try file.diagnose(key).kinds == [.damagedPages], "a used page of zeros is damaged")
    }

    // MARK: Other files

    static let contents: [(String, [UInt8], Diagnosis.Kind)] = [
        ("gzip", [0x1f, 0x8b, 8, 0] + noise(9_000), .notADatabase),
        ("zip", Array("PK\u{3}\u{4}".utf8) + noise(9_000), .notADatabase),
        ("PDF", Array("%PDF-1.7\n".utf8) + noise(9_000), .notADatabase),
        ("text", Array(String(repeating: "Dear diary, nothing of note. ", count: 500).utf8), .notADatabase),
        ("short text", Array("nothing".utf8), .notADatabase),
        ("JSON", Array("{\"a\": [\(String(repeating: "1, ", count: 3000))2]}".utf8), .notADatabase),
        ("an SQL dump", Array("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n".utf8), .notADatabase),
        ("zeros", [UInt8](repeating: 0, count: 20_000), .notADatabase),
        ("a pattern", (0..<20_000).map { UInt8($0 % 7) }, .notADatabase),
        ("a log", [0x37, 0x7f, 6, 0x82] + noise(9_000), .notADatabase),
        ("a journal", [0xd9, 0xd5, 5, 0xf9, 0x20, 0xa1, 0x63, 0xd7] + noise(9_000), .notADatabase),
        ("random bytes", noise(16_384), .undetermined),
        ("random bytes of no page", noise(16_385), .undetermined),
        ("few random bytes", noise(300), .truncated),
        (
            "another encryption with its sizes readable",
            noise(16) + [0x10, 0, 1, 1, 32, 64, 32, 32] + noise(16_360), .otherEncryption
        ),
        ("nothing", [], .empty),
    ]

    static func noise(_ count: Int) -> [UInt8] {
        var generator = SeededRandom(seed: UInt64(count))
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    @Test("A file of another kind is diagnosed, and random bytes are not mistaken for one", arguments: contents, keys)
    func content(test: (name: String, bytes: [UInt8], kind: Diagnosis.Kind), key: String) throws {
        let diagnosis = try PlantedFile(bytes: test.bytes).diagnose(key, rounds: 10, derivations: 5)
        #expect(diagnosis.kinds == [test.kind], "\(test.name): \(diagnosis.causes)")
    }

    /// The beginnings of files that can contain a plaintext database.
    static let containers: [(name: String, beginning: [UInt8])] = [
        ("a tar archive", Array("app.db".utf8) + zeros(251) + Array("ustar".utf8) + zeros(250)),
        ("a disk image", zeros(512) + Array("EFI PART".utf8) + zeros(504)),
        ("a disk image", zeros(446) + [0x80] + zeros(15) + zeros(48) + [0x55, 0xaa]),
        ("a disk image", zeros(1080) + [0x53, 0xef] + zeros(966)),
        ("a disk image", zeros(32_768) + Array("\u{1}CD001\u{1}".utf8) + zeros(2_041)),
    ]

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    @Test("A file that contains a plaintext database is diagnosed by its own format", arguments: containers, keys)
    func container(test: (name: String, beginning: [UInt8]), key: String) throws {
        let database = try LegacyFile { connection in
            try connection.execute("PRAGMA page_size = 512")
            try connection.executeScript(text: PlantedFile.rows)
        }
        let bytes = try Data(contentsOf: URL(filePath: database.path))
        let diagnosis = try PlantedFile(bytes: test.beginning + bytes).diagnose(key, rounds: 10, derivations: 5)
        #expect(diagnosis.kinds == [.notADatabase], "\(diagnosis.causes)")
        #expect(diagnosis.causes.first?.detail.hasSuffix("it looks like \(test.name)") == true, "\(diagnosis.causes)")
    }

    @Test("A database whose first page was overwritten with the beginning of an image is diagnosed as damaged")
    func overwrittenByImage() throws {
        let database = try LegacyFile { connection in
            try connection.execute("PRAGMA page_size = 512")
            try connection.executeScript(text: PlantedFile.rows)
        }
        let rest = try Data(contentsOf: URL(filePath: database.path)).dropFirst(512)
        let file = try PlantedFile(bytes: [0x89, 0x50, 0x4e, 0x47] + Self.zeros(508) + rest)
        let diagnosis = try file.diagnose(Self.raw, rounds: 10, derivations: 5)
        let detail = try #require(diagnosis.causes.first?.detail)
        #expect(detail.contains("a plaintext database with a damaged first page"), "\(diagnosis.causes)")
    }

    @Test("A file of one byte, whose size SQLite reports as 0, is diagnosed with its size", arguments: [0, 0x41])
    func oneByte(byte: UInt8) throws {
        let file = try PlantedFile(bytes: [byte])
        let diagnosis = try file.diagnose(Self.raw, rounds: 10, derivations: 5)
        #expect(diagnosis.kinds == [.truncated], "\(diagnosis.causes)")
        #expect(diagnosis.causes.first?.detail.hasPrefix("the file has 1 byte, which is less") == true)
        let error = try Inspector(path: file.path).keyDoesNotFit()
        #expect(error.detail.hasSuffix("it has 1 byte, which is less than one page"), "\(error)")
    }

    @Test("A folder is diagnosed, and a missing file is an error")
    func noFile() throws {
        let folder = try TemporaryFolder()
        let diagnosis = try Diagnostician(DatabasePaths(folder.path("")), DiagnosisOptions()).run(keyText: nil)
        #expect(diagnosis.kinds == [.notAFile])
        #expect(
            try storeError {
                try Diagnostician(DatabasePaths(folder.path("none.db")), DiagnosisOptions()).run(keyText: nil)
            }?.code == .missingFile)
    }

    // MARK: Plaintext

    @Test(
        "A plaintext database is diagnosed if a key is specified, and opens without one", arguments: ["DELETE", "WAL"])
    func plaintext(mode: String) throws {
        let file = try PlantedFile(nil, script: "PRAGMA journal_mode = \(mode);" + PlantedFile.rows)
        #expect(try file.diagnose(PlantedFile.passphrase).kinds == [.plaintext])
        #expect(try file.diagnose(nil).kinds == [])
        #expect(try PlantedFile(PlantedFile.passphrase).diagnose(nil).kinds == [.keyMissing])
    }

    @Test("A damaged or truncated plaintext database is diagnosed")
    func damagedPlaintext() throws {
        let file = try PlantedFile(nil)
        try file.change { $0 = $0.prefix(3 * 4096 + 17) }
        #expect(try file.diagnose(PlantedFile.passphrase).kinds == [.plaintext, .truncated])
        for range in [0..<4096, 0..<100, 0..<16, 16..<112] {
            let file = try PlantedFile(nil)
            try file.change { for index in range { $0[index] = 0 } }
            let diagnosis = try file.diagnose(PlantedFile.passphrase)
            #expect(
                diagnosis.kinds == [.damagedFirstPage] || diagnosis.kinds == [.plaintext, .damagedPages],
                "\(range): \(diagnosis.causes)")
        }
    }

    // MARK: Logs and journals

    private func logged(_ key: String?, script: String = PlantedFile.rows) throws -> PlantedFile {
        try PlantedFile(
            key.map { Array($0.utf8) }, unclosed: true,
            script: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + script)
    }

    private func replace(_ ending: String, of file: PlantedFile, by other: PlantedFile) throws {
        try Data(contentsOf: URL(filePath: other.path + ending)).write(to: URL(filePath: file.path + ending))
    }

    @Test("A log of another file or another key is diagnosed, and the file's own log is not", arguments: keys)
    func otherLog(key: String) throws {
        #expect(try logged(key).diagnose(key).kinds == [])
        for stranger in [try logged(key == Self.raw ? Self.other : key), try logged(Self.other), try logged(nil)] {
            let file = try logged(key)
            try replace("-wal", of: file, by: stranger)
            let diagnosis = try file.diagnose(key)
            #expect(diagnosis.kinds == [.staleLog], "\(diagnosis.causes)")
        }
    }

    @Test("A log from before the key of the file was changed is diagnosed")
    func logOfOlderKey() throws {
        let old = try logged(Self.raw)
        let file = try PlantedFile(Self.raw, pragmas: [])
        let rekeyed = try PlantedFile(Self.other)
        try replace("-wal", of: rekeyed, by: old)
        #expect(try rekeyed.diagnose(Self.other).kinds == [.staleLog])
        #expect(try file.diagnose(Self.raw).kinds == [])
    }

    @Test("A log of another copy of the file under the same raw key is diagnosed")
    func logOfOtherGeneration() throws {
        let key = "x'\(PlantedFile.digits)00112233445566778899aabbccddeeff'"
        let file = try logged(key, script: PlantedFile.rows + "PRAGMA wal_checkpoint(TRUNCATE); DELETE FROM note;")
        let other = try logged(
            key,
            script: PlantedFile.rows
                + "UPDATE note SET body = 'x'; PRAGMA wal_checkpoint(TRUNCATE); UPDATE note SET body = 'y'; PRAGMA user_version = 4;"
        )
        try replace("-wal", of: file, by: other)
        #expect(try file.diagnose(key).kinds == [.staleLog])
    }

    @Test("A file with a log's name that is not a log is diagnosed")
    func noLog() throws {
        let file = try PlantedFile(Self.raw)
        try Data("no log at all".utf8).write(to: URL(filePath: file.path + "-wal"))
        #expect(try file.diagnose(Self.raw).kinds == [.staleLog])
    }

    private func interrupted(_ key: String?) throws -> PlantedFile {
        try PlantedFile(
            key.map { Array($0.utf8) }, unclosed: true,
            script: PlantedFile.rows
                + "CREATE TABLE unchanged AS SELECT zeroblob(20000); PRAGMA cache_size = 2; BEGIN; UPDATE note SET body = 'changed', payload = zeroblob(300)"
        )
    }

    @Test("A hot journal is diagnosed, and distinguished from one of another key", arguments: keys)
    func journal(key: String) throws {
        #expect(try interrupted(key).diagnose(key).kinds == [.hotJournal])
        let file = try PlantedFile(key)
        try replace("-journal", of: file, by: interrupted(Self.other))
        #expect(try file.diagnose(key).kinds == [.staleJournal])
        try replace("-journal", of: file, by: interrupted(nil))
        #expect(try file.diagnose(key).kinds == [.staleJournal])
        #expect(try interrupted(nil).diagnose(nil).kinds == [.hotJournal])
    }

    @Test(
        "A size that a writer had written before it crashed is not that of a truncated file",
        arguments: [nil, "x'\(PlantedFile.digits)00112233445566778899aabbccddeeff'"])
    func crashedWhileGrowing(key: String?) throws {
        let (file, bytes) = (try interrupted(key), key.map { Array($0.utf8) })
        let grown = try PlantedFile(
            bytes,
            script: PlantedFile.rows + "INSERT INTO note SELECT id + 500, body, zeroblob(4000) FROM note")
        // It has the same key and salt, so that its first page is authentic in the other file too.
        let start = try Data(contentsOf: URL(filePath: grown.path))
        let size = key == nil ? FileHeader(bytes: [UInt8](start), fileSize: 0).pageSize : CipherSettings().pageSize
        try file.change { $0.replaceSubrange(0..<size, with: start.prefix(size)) }
        #expect(try file.diagnose(bytes).kinds == [.hotJournal])
        // A page that the journal does not hold is lost.
        let count = [UInt8](try Data(contentsOf: URL(filePath: file.path + "-journal"))).big32(16)
        try file.change { $0 = $0.prefix((Int(count) - 1) * size) }
        #expect(try file.diagnose(bytes).kinds.contains(.truncated))
    }

    // MARK: The public interface

    @Test("A provider of key text is asked for its text, even if it is not a key, and any other for its key")
    func providers() async throws {
        let file = try PlantedFile(Self.raw)
        let keys = try TemporaryFolder()
        let text = try keys.write("\u{feff}\(Self.raw)", to: "key")
        let found = try await DatabaseConverter.diagnose(URL(filePath: file.path), keyProvider: .file(text))
        #expect(found.kinds == [.byteOrderMark])
        let given = TestKeys.provider { try CipherKey(text: SecretBytes(Self.raw.utf8)) }
        #expect(try await DatabaseConverter.diagnose(URL(filePath: file.path), keyProvider: given).kinds == [])
        #expect(
            try await DatabaseConverter.diagnose(URL(filePath: file.path), keyProvider: nil).kinds == [.keyMissing])
    }

    @Test(
        "A FIFO in the place of a log or a journal is reported, and nothing waits for it",
        arguments: ["-wal", "-journal"])
    func fifo(ending: String) throws {
        let file = try PlantedFile(Self.raw)
        try #require(mkfifo(file.path + ending, 0o600) == 0)
        let found = try Diagnostician(DatabasePaths(file.path), DiagnosisOptions())
            .run(keyText: { SecretBytes(Self.raw.utf8) })
        #expect(found.kinds == [ending == "-wal" ? .staleLog : .staleJournal])
    }

    // MARK: Bounds

    @Test("The search stays within its limits and reports them")
    func limits() throws {
        let file = try PlantedFile(bytes: Self.noise(16_384))
        var options = DiagnosisOptions()
        options.maximumDerivations = 7
        let few = try Diagnostician(DatabasePaths(file.path), options).run(keyText: { SecretBytes("word".utf8) })
        #expect(few.derivations == 7)
        #expect(!few.isComplete)
        options.timeLimit = .zero
        let none = try Diagnostician(DatabasePaths(file.path), options).run(keyText: { SecretBytes("word".utf8) })
        #expect(none.derivations == 0)
        #expect(!none.isComplete)
    }

    @Test("A canceled search ends")
    func cancellation() throws {
        let file = try PlantedFile(bytes: Self.noise(16_384))
        let cancellation = UpgradeCancellation()
        cancellation.cancel()
        let error = try storeError {
            try Diagnostician(DatabasePaths(file.path), DiagnosisOptions(), cancellation)
                .run(keyText: { SecretBytes("word".utf8) })
        }
        #expect(error?.code == .cancelled)
    }
}
