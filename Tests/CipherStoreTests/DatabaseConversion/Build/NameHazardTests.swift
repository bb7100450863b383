internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Names in schemas that are not valid Unicode, as apps wrote them decades ago.
///
/// The files are made and read with plain names of the same length; in between, the names' bytes are changed in the
/// file. The tests therefore put no such name into SQL, and their comparison of rows cannot make the same mistakes as
/// the library.
struct NameHazardTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let script: String
        /// The plain names, which occur nowhere else in the file, and their replacements.
        let names: [(plain: String, bytes: [UInt8])]
        var needsGeneratedColumns = false
    }

    static let gbk: [UInt8] = [0xd0, 0xd5, 0xc3, 0xfb]

    static let cases = [
        Case(
            testDescription: "a column of a table that is filled column by column",
            script: #"CREATE TABLE person("QQQQ" TEXT, age INT); INSERT INTO person VALUES ('Anna', 30), (NULL, 31)"#,
            names: [("QQQQ", gbk)]),
        Case(
            testDescription: "a column with an index",
            script: """
                CREATE TABLE person("QQQQ" TEXT, age INT); CREATE INDEX i ON person("QQQQ");
                INSERT INTO person VALUES ('Anna', 30), ('Bert', 31)
                """, names: [("QQQQ", gbk)]),
        Case(
            testDescription: "columns whose names differ only where they are no Unicode",
            script: """
                CREATE TABLE t("QQA", "QQB", "QQC" TEXT PRIMARY KEY); INSERT INTO t VALUES (1, 2, 'c'), (3, 4, 'd');
                CREATE TABLE u("QQA", "QQB", "QQC"); INSERT INTO u VALUES (1, 2, 3), (4, 5, 6)
                """,
            names: [("QQA", [0x61, 0x80, 0x81]), ("QQB", [0x61, 0x82, 0x83]), ("QQC", [0xef, 0xbf, 0xbd])]),
        Case(
            testDescription: "tables of which one is called as the other is when it is repaired",
            script: """
                CREATE TABLE "QA"(a); CREATE TABLE "QBBB"(a, b); CREATE INDEX "XA" ON "QA"(a); CREATE INDEX "XBBB" ON "QBBB"(a, b);
                INSERT INTO "QA" VALUES (1), (2), (3); INSERT INTO "QBBB" VALUES (4, 5), (6, 7)
                """,
            names: [
                ("QA", [0x74, 0xff]), ("QBBB", [0x74, 0xef, 0xbf, 0xbd]), ("XA", [0x69, 0xff]),
                ("XBBB", [0x69, 0xef, 0xbf, 0xbd]),
            ]),
        Case(
            testDescription: "a key, a foreign key, a view and a trigger",
            script: """
                CREATE TABLE "QQQQ"("WWWW" TEXT, "YYYY", PRIMARY KEY("WWWW", "YYYY")) WITHOUT ROWID;
                CREATE TABLE child("ZZZZ" REFERENCES "QQQQ"("WWWW"), UNIQUE("ZZZZ")); CREATE VIEW "VVVV" AS SELECT "WWWW" FROM "QQQQ";
                CREATE TRIGGER "TTTT" AFTER INSERT ON child BEGIN INSERT INTO "QQQQ" VALUES (new."ZZZZ", 1); END;
                INSERT INTO child VALUES ('a'), ('b')
                """,
            names: [
                ("QQQQ", gbk), ("WWWW", [0xff, 0xfe, 0xfd, 0xfc]), ("YYYY", [0x01, 0x7f, 0x1b, 0x0a]),
                ("ZZZZ", [0x82, 0xa0, 0x82, 0xa2]), ("VVVV", [0xc0, 0x80, 0xed, 0xa0]),
                ("TTTT", [0xe4, 0xf6, 0xfc, 0xdf]),
            ]),
        Case(
            testDescription: "a generated column with a UNIQUE index",
            script: """
                CREATE TABLE t("QQQQ", "WWWW" AS ("QQQQ" + 1) UNIQUE, "YYYY" AS ("QQQQ" * 2) STORED, zzzz);
                INSERT INTO t("QQQQ", zzzz) VALUES (1, 'one'), (2, 'two')
                """,
            names: [("QQQQ", gbk), ("WWWW", [0xff, 0xfe, 0xfd, 0xfc]), ("YYYY", [0xe4, 0xf6, 0xfc, 0xdf])],
            needsGeneratedColumns: true),
        Case(
            testDescription: "quotes of every kind in names",
            script: """
                CREATE TABLE "QQQQ"("WWWW", "YYYY"); INSERT INTO "QQQQ" VALUES (1, 2); CREATE INDEX "ZZZZ" ON "QQQQ"("YYYY")
                """,
            names: [
                ("QQQQ", Array("`'[]".utf8)), ("WWWW", Array("a`b]".utf8)), ("YYYY", Array("```` ".utf8.prefix(4))),
                ("ZZZZ", Array("?1'`".utf8)),
            ]),
    ]

    /// Replaces bytes in a file with others of the same length.
    private static func respell(_ path: String, _ names: [(from: [UInt8], to: [UInt8])]) throws {
        var bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        for (from, to) in names {
            try #require(from.count == to.count)
            var start = 0
            while start + from.count <= bytes.count {
                if bytes[start..<(start + from.count)].elementsEqual(from) {
                    bytes.replaceSubrange(start..<(start + from.count), with: to)
                }
                start += 1
            }
        }
        // The journals no longer exist, and nobody has the file open.
        try Data(bytes).write(to: URL(filePath: path))
    }

    /// Makes a database with the names, and returns it with the dump of its plain form.
    private func make(_ test: Case) throws -> (LegacyFile, DatabaseDump) {
        let plain = try LegacyFile { try $0.executeScript(text: test.script) }
        let dump = try plain.originalDump()
        try Self.respell(plain.path, test.names.map { (Array($0.plain.utf8), $0.bytes) })
        return (try LegacyFile(copying: plain.path), dump)
    }

    private func plainDump(_ file: LegacyFile, _ test: Case) throws -> DatabaseDump {
        try Self.respell(file.path, test.names.map { ($0.bytes, Array($0.plain.utf8)) })
        return try file.dump(key: nil)
    }

    @Test(
        "Rows survive an encryption, a change of key and a decryption, whatever bytes are in the schema's names",
        arguments: cases)
    func roundTrip(test: Case) throws {
        guard !test.needsGeneratedColumns || Engine.current.hasGeneratedColumns else { return }
        let (file, expected) = try make(test)
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.warnings.besidesLeases == [])
        let newKey: @Sendable () throws -> CipherKey = { try TestKeys.raw(8) }
        _ = try Rekeying(
            at: DatabasePaths(file.path), oldKey: TestKeys.provider(), newKey: TestKeys.provider(newKey),
            formats: [CipherSettings()], newSettings: CipherSettings(), options: .init()
        ).run()
        _ = try Decryption(
            path: file.path, provider: TestKeys.provider(newKey), formats: [CipherSettings()], options: .init()
        ).run()
        let result = try plainDump(file, test)
        #expect(result == expected, "\(result.differences(from: expected))")
    }

    @Test("A shadow proof of a file with such names compares the same rows and changes nothing", arguments: cases)
    func shadow(test: Case) throws {
        guard !test.needsGeneratedColumns || Engine.current.hasGeneratedColumns else { return }
        let (file, _) = try make(test)
        let before = try file.digest()
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).shadow()
        #expect(report.outcome == .shadow)
        #expect(try file.digest() == before)
    }

    private static let person = Case(
        testDescription: "",
        script: """
            CREATE TABLE person(id INTEGER PRIMARY KEY, age INTEGER, "QQQQ" TEXT);
            INSERT INTO person VALUES (1, 30, 'Anna')
            """, names: [("QQQQ", gbk)])

    @Test("A schema whose names are not text is not compared with a declared one, and nothing changes")
    func declaredSchema() throws {
        // A rebuild would write, under another name, the column that the configuration does not know.
        let (file, _) = try make(Self.person)
        let before = try file.digest()
        let configuration = Configuration.declaring(
            ["person": ["id": "INTEGER PRIMARY KEY", "age": "INTEGER NOT NULL DEFAULT 7"]])
        let error = try storeError { try OpeningFixture.open(file.folder, configuration) }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("person is not valid UTF-8") == true, "\(error?.detail ?? "no error")")
        #expect(try file.digest() == before)
    }

    @Test("A file with such names is encrypted and stamped if the app manages its schema itself")
    func noSchemaSource() throws {
        let (file, _) = try make(Self.person)
        _ = try OpeningFixture.open(file.folder, Configuration(databaseName: "app.db", version: 25))
        _ = try Decryption(
            path: file.path, provider: TestKeys.provider(), formats: [CipherSettings()], options: .init()
        ).run()
        try Self.respell(file.path, Self.person.names.map { ($0.bytes, Array($0.plain.utf8)) })
        #expect(try file.read(key: nil) { try $0.values(String.self, "SELECT QQQQ FROM person") } == ["Anna"])
    }

    @Test("A table with the name of one of the builder's temporary tables is converted")
    func temporaryNames() throws {
        let file = try LegacyFile {
            try $0.executeScript(
                """
                CREATE TABLE bare(a); INSERT INTO bare VALUES (1); DELETE FROM bare; INSERT INTO bare VALUES (2), (3);
                CREATE TABLE cipherstore_filling_0(a, b); CREATE TABLE "Cipherstore_Filling__1"(a PRIMARY KEY, b UNIQUE);
                INSERT INTO cipherstore_filling_0 VALUES (4, 5); INSERT INTO Cipherstore_Filling__1 VALUES (6, 7)
                """)
        }
        let before = try file.originalDump()
        _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(try file.dump(key: TestKeys.raw()) == before)
    }

    @Test("A name that is not text is shown with its bytes")
    func description() {
        #expect(SchemaName(bytes: [0x61, 0xff, 0x0a, 0xc3, 0xa9, 0x7f]).description == "a\\xff\\x0aé\\x7f")
        #expect(SchemaName(bytes: [0xf0, 0x9f]).description == "\\xf0\\x9f")
    }
}
