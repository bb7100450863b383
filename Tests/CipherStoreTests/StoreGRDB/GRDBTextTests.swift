internal import CipherDatabaseConversion
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
internal import CipherStoreGRDB
import CipherTestSupport
import Foundation
import Testing

/// The collations and functions that a GRDB schema may name.
struct GRDBTextTests {
    private func connection() throws -> Connection {
        let connection = try Connection(path: ":memory:", mode: .create)
        for collation in Collation.grdb { try connection.register(collation) }
        for function in SQLFunction.grdb { try connection.register(function) }
        return connection
    }

    @Test(
        "Each collation orders like the comparison that it is named for",
        arguments: [
            ("swiftCompare", ["E", "Z", "e", "file10", "file2", "é"]),
            ("swiftCaseInsensitiveCompare", ["E", "e", "é", "file10", "file2", "Z"]),
            ("swiftLocalizedCaseInsensitiveCompare", ["E", "e", "é", "file10", "file2", "Z"]),
            ("swiftLocalizedCompare", ["e", "E", "é", "file10", "file2", "Z"]),
            ("swiftLocalizedStandardCompare", ["e", "E", "é", "file2", "file10", "Z"]),
        ])
    func orders(name: String, expected: [String]) throws {
        let connection = try connection()
        try connection.executeScript(text: "CREATE TABLE t(a TEXT COLLATE \(name)); CREATE INDEX i ON t(a)")
        for text in ["é", "E", "e", "Z", "file10", "file2"] { try connection.execute("INSERT INTO t VALUES (\(text))") }
        // Orders equal texts by their bytes.
        #expect(try connection.values(String.self, "SELECT a FROM t ORDER BY a, CAST(a AS BLOB)") == expected)
    }

    @Test func `Letters that are equal to Swift are equal to swiftCompare`() throws {
        let connection = try connection()
        let (one, two) = ("\u{e9}", "e\u{301}")
        #expect(try connection.value(Bool.self, "SELECT \(one) = \(two)") == false)
        #expect(try connection.value(Bool.self, "SELECT \(one) = \(two) COLLATE swiftCompare") == true)
        #expect(try connection.value(Bool.self, "SELECT \(two) = \(one) COLLATE swiftCompare") == true)
    }

    @Test(
        "Each function converts letters that SQLite's own functions leave unchanged",
        arguments: [
            ("swiftCapitalizedString", "Jérôme Öl"), ("swiftLowercaseString", "jérôme öl"),
            ("swiftUppercaseString", "JÉRÔME ÖL"), ("swiftLocalizedCapitalizedString", "Jérôme Öl"),
            ("swiftLocalizedLowercaseString", "jérôme öl"), ("swiftLocalizedUppercaseString", "JÉRÔME ÖL"),
        ])
    func functions(name: String, expected: String) throws {
        let connection = try connection()
        func value(_ argument: String) throws -> String? {
            try connection.value(String?.self, SQL(text: "SELECT \(name)(\(argument))")) ?? nil
        }
        #expect(try value("'jéRÔme öL'") == expected)
        #expect(try value("CAST('jéRÔme öL' AS BLOB)") == expected)
        for nothing in ["NULL", "1", "2.5", "x'ff'"] { #expect(try value(nothing) == nil) }
    }

    @Test func `Nothing is registered beside them`() {
        #expect(Collation.grdb.count == 5)
        #expect(SQLFunction.grdb.count == 6)
    }

    @Test func `A database whose indexes use GRDB's collations is encrypted and goes on being used`() async throws {
        let file = try LegacyFile { connection in
            for collation in Collation.grdb { try connection.register(collation) }
            for (number, collation) in Collation.grdb.enumerated() {
                try connection.executeScript(
                    text: """
                        CREATE TABLE t\(number)(a TEXT COLLATE \(collation.name) UNIQUE);
                        INSERT INTO t\(number) VALUES ('b'), ('Ä'), ('file10'), ('file9');
                        """)
            }
        }
        var configuration = Configuration(databaseName: "app.db", version: 1)
        configuration.collations = Collation.grdb
        let store = try await EncryptedStore.open(
            configuration, directory: file.folder.url, keyProvider: TestKeys.provider())
        #expect(store.report.outcome == .encrypted)
        #expect(store.report.warnings.besidesLeases.isEmpty)
        try await store.write { db in try db.execute("INSERT INTO t4 VALUES ('file11')") }
        let files = try await store.read { db in
            try db.values(String.self, "SELECT a FROM t4 WHERE a >= 'file1' ORDER BY a")
        }
        #expect(files == ["file9", "file10", "file11"])
        await store.close()
    }

    @Test func `An index in the order of another locale is rebuilt, and the report says so`() async throws {
        let file = try LegacyFile { connection in
            // Represents another locale's order, which this locale cannot check.
            let others = Collation(name: "swiftLocalizedCompare") { left, right in
                right.lexicographicallyPrecedes(left) ? -1 : left.elementsEqual(right) ? 0 : 1
            }
            try connection.register(others)
            try connection.executeScript(
                """
                CREATE TABLE t(a TEXT COLLATE swiftLocalizedCompare); CREATE INDEX i ON t(a);
                INSERT INTO t VALUES ('a'), ('b'), ('c'), ('d');
                """)
        }
        var configuration = Configuration(databaseName: "app.db", version: 1)
        configuration.collations = Collation.grdb
        let store = try await EncryptedStore.open(
            configuration, directory: file.folder.url, keyProvider: TestKeys.provider())
        #expect(store.report.warnings.contains { $0.contains("index i") })
        let found = try await store.read { db in try db.values(String.self, "SELECT a FROM t WHERE a > 'b' ORDER BY a")
        }
        #expect(found == ["c", "d"])
        await store.close()
    }
}
