internal import CipherDatabaseConversion
import CipherKeyProviders
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// A database that is damaged, recovered and checked.
struct RecoveryFixture {
    let folder: TemporaryFolder
    let path: String
    let places: RowPlaces

    static let script = """
        CREATE TABLE contact(id INTEGER PRIMARY KEY, name TEXT NOT NULL, height REAL, photo BLOB);
        CREATE TABLE message(author INTEGER, body TEXT, sent REAL);
        CREATE INDEX message_author ON message(author, sent);
        CREATE TABLE tag(name TEXT, number INTEGER, note TEXT, PRIMARY KEY(name, number)) WITHOUT ROWID;
        CREATE TABLE event(id INTEGER PRIMARY KEY AUTOINCREMENT, day INTEGER UNIQUE, place TEXT COLLATE NOCASE);
        CREATE TABLE small(a, b);
        CREATE VIEW names AS SELECT name FROM contact;
        CREATE TRIGGER cleared AFTER DELETE ON contact BEGIN DELETE FROM message WHERE author = old.id; END;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
            INSERT INTO contact SELECT i, 'contact ' || i, i / 4.0, CASE i % 50 WHEN 0 THEN randomblob(9000) END FROM n;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO message SELECT i % 1500, 'message ' || i || hex(randomblob(20)), i * 1.5 FROM n;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
            INSERT INTO tag SELECT 'tag ' || (i % 700), i, hex(randomblob(12)) FROM n;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
            INSERT INTO event SELECT NULL, i * 7, 'place ' || i FROM n;
        INSERT INTO small VALUES (1, 'x'), (2, 'y'), (NULL, x'00');
        PRAGMA user_version = 17; PRAGMA application_id = 5;
        """

    init(pageSize: Int = 1024, script: String = Self.script, before: String = "") throws {
        folder = try TemporaryFolder(inMemory: true)
        path = folder.path("app.db")
        try LegacyFile.write(path, script: "PRAGMA page_size = \(pageSize); \(before) BEGIN; \(script); COMMIT")
        places = try RowPlaces(path)
    }

    var output: String { folder.path("new.db") }
    var pageSize: Int { get throws { try Int(bytes(16, 1)[0]) << 8 } }

    private func bytes(_ offset: Int, _ count: Int) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: path))[offset..<(offset + count)])
    }

    enum Damage: CaseIterable { case zeros, random, ones }

    /// Overwrites whole pages.
    func damage(_ pages: some Sequence<UInt32>, _ kind: Damage = .zeros) throws {
        let size = try pageSize
        var data = try Data(contentsOf: URL(filePath: path))
        var random = SeededRandom(seed: 5)
        for page in pages {
            for offset in (Int(page - 1) * size)..<(Int(page) * size) {
                switch kind {
                case .zeros: data[offset] = 0
                case .random: data[offset] = UInt8.random(in: 0...255, using: &random)
                case .ones: data[offset] = 0xff
                }
            }
        }
        try data.write(to: URL(filePath: path))
    }

    /// Replaces pages by those of another state of the database.
    func restore(_ pages: some Sequence<UInt32>, from other: RecoveryFixture) throws {
        let size = try pageSize
        var data = try Data(contentsOf: URL(filePath: path))
        let earlier = try Data(contentsOf: URL(filePath: other.path))
        for page in pages {
            let extent = Int(page - 1) * size..<Int(page) * size
            data.replaceSubrange(extent, with: earlier[extent])
        }
        try data.write(to: URL(filePath: path))
    }

    @discardableResult
    func recover(template: String? = nil, options: ConversionOptions = ConversionOptions()) throws -> RecoveryReport {
        let before = try FolderDigest(folder.url)
        let report = try DatabaseRecovery(
            of: DatabasePaths(path), provider: TestKeys.provider(), formats: [CipherSettings()], to: output,
            targetProvider: nil, template: template, options: options
        ).run()
        let names = before.names + ["new.db"]
        #expect(try folder.names == names.sorted())
        let new = try Data(contentsOf: URL(filePath: output))
        try FileManager.default.removeItem(atPath: output)
        #expect(try FolderDigest(folder.url) == before)
        try new.write(to: URL(filePath: output))
        return report
    }

    /// Returns the content of the new database.
    func recovered() throws -> [RowPlaces.Key: String] {
        let connection = try Connection(path: output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        return try RowPlaces.rows(connection)
    }

    /// Checks the new database.
    ///
    /// Each row whose pages are intact must be recovered unchanged, and no row may appear that did not exist.
    func check(
        lost: Set<UInt32>, apart: Bool = false, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let found = try recovered().filter { !$0.key.table.hasPrefix("lost_and_found") }
        let missing = places.whole(without: lost).filter { found[$0] != places.rows[$0] }
        #expect(
            missing.isEmpty, "\(missing.count) missing, such as \(missing.prefix(3))", sourceLocation: sourceLocation)
        let invented = found.filter { places.rows[$0.key] != $0.value }
        #expect(
            invented.isEmpty, "\(invented.count) invented, such as \(invented.prefix(3))",
            sourceLocation: sourceLocation)
    }
}
