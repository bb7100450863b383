internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Plaintext files with other bytes where SQLite writes zeros, and encrypted files with a readable header.
@Suite struct FileHeaderTests {
    private static func poke(_ path: String, _ offset: UInt64, _ bytes: [UInt8]) throws {
        let handle = try FileHandle(forUpdating: URL(filePath: path))
        defer { handle.closeFile() }
        try handle.seek(toOffset: offset)
        try handle.write(contentsOf: Data(bytes))
    }

    @Test(
        "A plaintext file is recognized whatever bytes 72 to 91 are, for every page size, with and without tables",
        arguments: ["512", "1024", "4096", "65536"],
        ["", "CREATE TABLE t(a); INSERT INTO t VALUES (1)", "many"])
    func plaintext(pageSize: String, script: String) throws {
        let many = (0..<300).map { "CREATE TABLE t\($0)(a, b, c)" }.joined(separator: ";")
        let file = try LegacyFile { connection in
            try connection.executeScript(
                text:
                    "PRAGMA page_size = \(pageSize); PRAGMA user_version = 3; BEGIN; \(script == "many" ? many : script); COMMIT"
            )
        }
        try Self.poke(file.path, 72, (0..<20).map { _ in UInt8.random(in: 1...255) })
        #expect(try Inspector(path: file.path).surface() == .plaintext)
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.outcome == .encrypted)
        #expect(try file.dump(key: TestKeys.raw()) == file.originalDump())
    }

    @Test(
        "A plaintext file truncated to less than a page is damaged",
        arguments: [16, 19, 50, 91, 92, 99, 100, 111, 112, 511])
    func cut(size: Int) throws {
        let file = try LegacyFile { try $0.executeScript("CREATE TABLE t(a); INSERT INTO t VALUES (1)") }
        // The bytes that old releases of SQLite wrote where newer ones write zeros.
        try Self.poke(file.path, 72, [UInt8](repeating: 5, count: 20))
        let handle = try FileHandle(forUpdating: URL(filePath: file.path))
        try handle.truncate(atOffset: UInt64(size))
        try handle.close()
        let before = try file.digest()
        let inspector = try Inspector(path: file.path)
        #expect(try inspector.surface() == .plaintext)
        #expect(
            try storeError { try inspector.inspect(provider: TestKeys.provider(), formats: [CipherSettings()]) }?.code
                == .corrupt)
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider())
        #expect(try storeError { try upgrade.run() }?.code == .corrupt)
        #expect(try file.digest() == before)
    }

    @Test("Random bytes after a readable header are never recognized as plaintext")
    func random() {
        var bytes = [UInt8](repeating: 0, count: 4096)
        bytes[..<16] = Array("SQLite format 3\0".utf8)[...]
        bytes[16..<24] = [16, 0, 1, 1, 80, 64, 32, 32]
        for _ in 0..<100_000 {
            for index in stride(from: 32, to: 112, by: 1) { bytes[index] = UInt8.random(in: .min ... .max) }
            guard !FileHeader.isPlaintext(bytes) else {
                Issue.record("taken for plaintext: \(bytes[32..<112])")
                return
            }
        }
        // The bytes resemble a plaintext file, but are refused, because one number is out of range.
        bytes = Array(bytes[..<32]) + [UInt8](repeating: 0, count: 4096 - 32)
        bytes.replaceSubrange(100..<108, with: [0x0d, 0, 0, 0, 0, 0x0f, 0xb0, 0])
        bytes[75] = 1
        #expect(FileHeader.isPlaintext(bytes))
        for (offset, value) in [(44, 1), (47, 5), (56, 1), (59, 4), (100, 0x0a), (101, 0xff), (103, 0xff), (107, 61)] {
            var other = bytes
            other[offset] = UInt8(value)
            #expect(!FileHeader.isPlaintext(other), "\(offset)")
        }
    }

    @Test(
        "An encrypted file with a readable header is not recognized as plaintext",
        .enabled(if: Engine.current.hasCompatibilityPragma))
    func encrypted() throws {
        let folder = try TemporaryFolder()
        for number in 0..<50 {
            let path = folder.path("\(number).db")
            try LegacyFile.write(
                path, key: TestKeys.rawWithSalt(UInt8(number)), settings: CipherSettings(plaintextHeaderSize: 32),
                script: "CREATE TABLE t(a); INSERT INTO t VALUES (\(number))")
            #expect(try Inspector(path: path).surface() == .opaque(hasPlaintextHeader: true))
        }
    }
}
