internal import CipherDatabaseConversion
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Indexes whose entries are computed from the rows, and sorted in a file because they do not fit in the memory.
struct SortedIndexTests {
    struct Kind: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let script: String

        init(_ description: String, _ script: String) {
            testDescription = description
            self.script = script
        }
    }

    static let kinds = [
        Kind("on an expression", "CREATE INDEX i ON t(lower(a))"),
        Kind("partial", "CREATE INDEX i ON t(a) WHERE id > 7"),
        Kind(
            "damaged",
            """
            CREATE INDEX i ON t(a) WHERE id < 0; PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(a)' WHERE name = 'i';
            """),
    ]

    @Test(
        "The entries of an index are sorted in a file without a name in the database's folder", arguments: kinds,
        [1024, 4096])
    func sortsInFile(kind: Kind, pageSize: Int) throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                text: """
                    PRAGMA page_size = \(pageSize); CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT);
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
                    INSERT INTO t SELECT i, (i * 7919 % 60013) || ' ' || hex(zeroblob(50)) FROM n;
                    \(kind.script)
                    """)
        }
        let folder = file.folder
        let largest = Largest()
        var options = ConversionOptions()
        options.progress = { _ in largest.note(NamelessFiles.largest(in: folder)) }
        _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
        #if os(Linux)
            #expect(largest.value > 4 << 20)
        #endif
        #expect(try file.folder.names == ["app.db"])
        let (count, check) = try file.read(key: TestKeys.raw()) {
            (
                try $0.value(Int.self, "SELECT count(*) FROM t INDEXED BY i WHERE \(Self.condition(kind))"),
                try $0.value(String.self, "PRAGMA integrity_check")
            )
        }
        #expect(count == (kind.testDescription == "partial" ? 59_993 : 60_000))
        #expect(check == "ok")
    }

    @Test("The memory for sorting does not depend on what the header of the original asks for")
    func cacheSize() throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(text: "PRAGMA default_cache_size = 1000000; CREATE TABLE t(a)")
        }
        let connection = try ConnectionProfile.building(1 << 20).open(file.path)
        defer { connection.close() }
        #expect(try connection.value(Int.self, "PRAGMA default_cache_size") == 1_000_000)
        #expect(try connection.value(Int.self, "PRAGMA cache_size") == -2_000)
    }

    private static func condition(_ kind: Kind) -> SQL {
        switch kind.testDescription {
        case "partial": "id > 7 AND a > ''"
        case "damaged": "a > ''"
        default: "lower(a) > ''"
        }
    }
}
