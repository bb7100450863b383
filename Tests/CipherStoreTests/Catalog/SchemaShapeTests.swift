internal import CipherCatalog
internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

/// Schema texts that SQLite reads, and schema entries with wrong contents.
@Suite struct SchemaShapeTests {
    /// Makes a database in which one text of the schema is replaced.
    private func file(_ word: String, _ other: String) throws -> LegacyFile {
        try LegacyFile { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a); CREATE UNIQUE INDEX u ON t(b);
                    CREATE VIEW v AS SELECT a FROM t; CREATE TRIGGER r AFTER DELETE ON t BEGIN SELECT 1; END;
                    CREATE VIRTUAL TABLE f USING fts4(a); INSERT INTO f VALUES ('word');
                    INSERT INTO t VALUES ('one', 1), ('two', 2); PRAGMA writable_schema = ON;
                    UPDATE sqlite_master SET sql = replace(sql, '\(word)', '\(other)') WHERE name IN ('t', 'i', 'u', 'v', 'r', 'f');
                    PRAGMA writable_schema = OFF
                    """)
        }
    }

    @Test(
        "White space and comments between the first words of a definition are read as SQLite reads them, and kept",
        arguments: ["CREATE", "CREATE UNIQUE", "CREATE VIRTUAL"],
        ["  ", " \t", " \n", " /* a\ncomment */ ", " -- a comment\n", " \r\n\u{c}"])
    func whiteSpace(_ words: String, _ space: String) throws {
        let file = try file("\(words) ", words + space)
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.outcome == .encrypted)
        #expect(try file.dump(key: TestKeys.raw()) == file.originalDump())
    }

    @Test(
        "A definition whose words are separated only by a tab, a newline or a comment is read and kept",
        .enabled(if: Engine.current.canRenameColumns))
    func noBlank() throws {
        for space in ["\t", "\n", "/**/", "--\n"] {
            let file = try file("CREATE ", "CREATE\(space)")
            _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
            #expect(try file.dump(key: TestKeys.raw()) == file.originalDump())
        }
    }

    @Test(
        "A schema entry whose SQL creates something else is refused, whatever separates its words",
        arguments: [
            "CREATE  VIEW t AS SELECT 1 AS a", "CREATE/* TABLE */VIEW t AS SELECT 1 AS a",
            "CREATE -- TABLE\n VIEW t AS SELECT 1 AS a", "CREATE  VIRTUAL  TABLE t USING fts4(a)",
            "CREATE TABLE/**/", "CREATE \"TABLE\" t(a)",
        ])
    func otherKind(_ sql: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a)")
        let connection = try fixture.open()
        defer { connection.close() }
        try SchemaEntryCheck.check(connection)
        try connection.executeScript("PRAGMA writable_schema = ON")
        try connection.execute("UPDATE sqlite_master SET sql = \(sql)")
        let isTable = sql == "CREATE TABLE/**/"
        #expect(try storeError { try SchemaEntryCheck.check(connection) }?.code == (isTable ? nil : .corrupt))
    }
}
