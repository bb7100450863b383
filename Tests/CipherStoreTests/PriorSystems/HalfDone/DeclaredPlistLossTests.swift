internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// What was lost by apps that read all rows, deleted the file and inserted the rows again (system B).
struct DeclaredPlistLossTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let configuration = Configuration(
        databaseName: "local.db", version: 25, encryption: .init(sinceVersion: 24),
        schema: .tables([
            DeclaredTable(
                name: "chat",
                columns: [
                    .init(name: "id", definition: "INTEGER PRIMARY KEY AUTOINCREMENT"),
                    .init(name: "uid", definition: "TEXT"), .init(name: "content", definition: "BLOB"),
                    .init(name: "sentAt", definition: "INTEGER"), .init(name: "added", definition: "TEXT"),
                ])
        ]))

    /// Makes the file at version 23, upgrades it to 25, and reads one column.
    private func values(_ script: String, _ query: String) throws -> [Value] {
        try LegacyFile.write(
            folder.path("local.db"),
            script: """
                CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, content BLOB, sentAt INTEGER);
                PRAGMA user_version = 23; \(script)
                """)
        let opening = try StoreOpening(
            configuration: Self.configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider())
        #expect(try opening.run().report.outcome == .encrypted)
        return try LegacyFile(copying: folder.path("local.db")).read(key: TestKeys.raw()) {
            try $0.values(Value.self, SQL(text: query))
        }
    }

    @Test("Primary keys are kept with their gaps, and the next row gets the next number")
    func primaryKeys() throws {
        let ids = try values(
            "INSERT INTO chat(id, uid) VALUES (5, 'a'), (9000000000, 'b'), (-3, 'c'); INSERT INTO chat(id) VALUES (9000000007); "
                + "DELETE FROM chat WHERE id = 9000000007;",
            "SELECT id FROM chat UNION ALL SELECT seq FROM sqlite_sequence WHERE name = 'chat'")
        #expect(ids == [.integer(-3), .integer(5), .integer(9_000_000_000), .integer(9_000_000_007)])
    }

    @Test("BLOBs are kept byte for byte")
    func blobs() throws {
        let blobs = try values(
            "INSERT INTO chat(content) VALUES (x'89504e4700ff00'), (x''), (zeroblob(5)), (x'c328');",
            "SELECT content FROM chat ORDER BY id")
        #expect(
            blobs == [
                .blob([0x89, 0x50, 0x4e, 0x47, 0, 0xff, 0]), .blob([]), .blob([0, 0, 0, 0, 0]), .blob([0xc3, 0x28]),
            ])
    }

    @Test("Integers of 64 bits are kept exactly")
    func integers() throws {
        let numbers = try values(
            "INSERT INTO chat(sentAt) VALUES (1600000000000), (9223372036854775807), (-9223372036854775808), (2147483648);",
            "SELECT sentAt FROM chat ORDER BY id")
        #expect(numbers == [.integer(1_600_000_000_000), .integer(.max), .integer(.min), .integer(2_147_483_648)])
    }

    @Test("NULL stays NULL and empty text stays empty text")
    func nulls() throws {
        let texts = try values(
            "INSERT INTO chat(uid) VALUES (NULL), (''), ('NULL');", "SELECT uid FROM chat ORDER BY id")
        #expect(texts == [.null, .text(""), .text("NULL")])
    }

    @Test("Tables, indexes and views that the property list does not name are kept")
    func undeclared() throws {
        let found = try values(
            """
            CREATE TABLE other(a, b); INSERT INTO other(rowid, a) VALUES (70, 'kept'), (-1, x'00'); CREATE INDEX by_uid ON chat(uid);
            CREATE VIEW recent AS SELECT * FROM chat; CREATE TRIGGER tr AFTER INSERT ON chat BEGIN SELECT 1; END;
            """,
            "SELECT name FROM sqlite_master WHERE name IN ('other', 'by_uid', 'recent', 'tr') UNION ALL "
                + "SELECT rowid || typeof(a) FROM other")
        #expect(found == ["other", "by_uid", "recent", "tr", "-1blob", "70text"].map(Value.text))
    }
}
