internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Rows that SQLite cannot read, although every page is intact.
struct UnreadableRowTests {
    /// A database with a row that SQLite cannot read, although its page is intact.
    private static func unreadableRow(_ columns: String) throws -> LegacyFile {
        let file = try LegacyFile {
            try $0.executeScript(
                text: """
                    PRAGMA page_size = 4096; CREATE TABLE t(\(columns));
                    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
                    INSERT INTO t(id, a, b) SELECT i, 'title ' || i, printf('body %020d', i) FROM n;
                    """)
        }
        var bytes = try Array(Data(contentsOf: URL(filePath: file.path)))
        let row = try #require(bytes.indices.first { bytes[$0...].starts(with: "title 7body".utf8) })
        // The serial type of the last value, a text of 25 bytes, is raised to that of 50 bytes.
        #expect(bytes[row - 1] == 63)
        bytes[row - 1] = 113
        try Data(bytes).write(to: URL(filePath: file.path))
        return file
    }

    static let columns = [
        "id INTEGER PRIMARY KEY, a, b", "id INTEGER PRIMARY KEY, a UNIQUE, b", "id INTEGER PRIMARY KEY, a NOT NULL, b",
    ]

    @Test(
        "A row that SQLite cannot read is refused, whatever the proof reads", arguments: columns, ProofReader.allCases)
    func refusesUnreadableRow(columns: String, proof: ProofReader) throws {
        for onDamage in [OnDamage.refuse, .rebuildIndexes] {
            let file = try Self.unreadableRow(columns)
            let before = try file.digest()
            let error = try #require(try storeError { try file.upgrade(onDamage, proof).run() })
            #expect(error.code == .corrupt)
            #expect(try file.digest() == before)
        }
        let file = try Self.unreadableRow(columns)
        let report = try file.upgrade(.recover, proof).run()
        #expect(report.outcome == .recovered)
        #expect(report.rows == 29)
    }
}

extension LegacyFile {
    /// Returns the encryption upgrade of the file.
    func upgrade(_ onDamage: OnDamage, _ proof: ProofReader = .records) throws -> EncryptionUpgrade {
        var options = ConversionOptions()
        options.onDamage = onDamage
        options.proof = proof
        return try EncryptionUpgrade(path: path, provider: TestKeys.provider(), options: options)
    }
}
