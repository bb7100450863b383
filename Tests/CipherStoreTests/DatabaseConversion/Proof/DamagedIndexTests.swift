internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Indexes of the original that do not match its rows.
struct DamagedIndexTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let schema: String
        /// The index, and its entries as the rows of a separate table.
        let index: String
        let entries: String
        let damage: String
        /// Another change of the schema.
        var edit = ""
    }

    private static let rows = """
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
        INSERT INTO t(a, b) SELECT 'k' || i, i % 10 FROM n
        """

    static let cases = [
        Case(
            testDescription: "missing from an automatic index", schema: "CREATE TABLE t(a TEXT UNIQUE, b)",
            index: "sqlite_autoindex_t_1", entries: "(a, r, PRIMARY KEY(a, r))",
            damage: "DELETE FROM entries WHERE a BETWEEN 'k1000' AND 'k1099'"),
        Case(
            testDescription: "missing from an automatic index of a table with its own key",
            schema: "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT UNIQUE, b)",
            index: "sqlite_autoindex_t_1", entries: "(a, r, PRIMARY KEY(a, r))",
            damage: "DELETE FROM entries WHERE a = 'k1'"),
        Case(
            testDescription: "missing from an index of the app's",
            schema: "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(b, a)", index: "i",
            entries: "(b, a, r, PRIMARY KEY(b, a, r))", damage: "DELETE FROM entries WHERE a = 'k2000'"),
        Case(
            testDescription: "another value in an index",
            schema: "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a DESC)", index: "i",
            entries: "(a, r, PRIMARY KEY(a DESC, r))",
            damage: "DELETE FROM entries WHERE a = 'k7'; INSERT INTO entries VALUES ('k7x', 7)"),
        Case(
            testDescription: "entries out of order",
            schema: "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a COLLATE NOCASE)", index: "i",
            entries: "(a, r, PRIMARY KEY(a DESC, r))",
            damage: "CREATE TABLE sorted AS SELECT * FROM entries; DELETE FROM entries; "
                + "INSERT INTO entries SELECT * FROM sorted"),
        Case(
            testDescription: "missing from a key of a WITHOUT ROWID table's own index",
            schema: "CREATE TABLE t(a TEXT PRIMARY KEY, b) WITHOUT ROWID; CREATE INDEX i ON t(b)", index: "i",
            entries: "(b, a, PRIMARY KEY(b, a))", damage: "DELETE FROM entries WHERE b = 3"),
        Case(
            testDescription: "missing from a partial index",
            schema: "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a) WHERE b > 5", index: "i",
            entries: "(a, r, PRIMARY KEY(a, r))", damage: "DELETE FROM entries WHERE r = 9"),
        Case(
            testDescription: "missing from an index beside one on an expression",
            schema: "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(b, a); CREATE INDEX e ON t(lower(a))", index: "i",
            entries: "(b, a, r, PRIMARY KEY(b, a, r))", damage: "DELETE FROM entries WHERE a = 'k2000'"),
        Case(
            testDescription: "missing from an index on an expression",
            schema: "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(length(a))", index: "i",
            entries: "(a, r, PRIMARY KEY(a, r))", damage: "DELETE FROM entries WHERE r = 9"),
    ]

    /// Damage that none of SQLite's checks detects, or that is in the definition, made in three steps.
    static let unseen = [
        (
            "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a) WHERE b > 5",
            "DELETE FROM sqlite_master WHERE name = 'i'", "DELETE FROM t WHERE b = 7",
            "INSERT INTO sqlite_master SELECT * FROM entry"
        ),
        (
            "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a)", "", "",
            "UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(a DESC)' WHERE name = 'i'"
        ),
        (
            "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(b)", "", "",
            "UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(b, a)' WHERE name = 'i'"
        ),
        (
            "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a)", "", "",
            "UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(b)' WHERE name = 'i'"
        ),
    ]

    @Test(
        "An index with entries of missing rows or of another definition is rebuilt from the rows",
        arguments: unseen)
    func healsUnseen(schema: String, before: String, change: String, after: String) throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(text: schema + ";" + Self.rows)
            try connection.executeScript("CREATE TEMP TABLE entry AS SELECT * FROM sqlite_master WHERE name = 'i'")
            if !before.isEmpty { try connection.editSchema(before) }
            try connection.executeScript(text: change)
            try connection.editSchema(after)
        }
        let wanted = try file.readOriginal {
            try $0.value(Int.self, "SELECT count(*) FROM t NOT INDEXED WHERE b > 5 AND a > ''")
        }
        _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        let health = try file.read(key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA integrity_check") }
        #expect(health == "ok")
        let found = try file.read(key: TestKeys.raw()) {
            try $0.value(Int.self, "SELECT count(*) FROM t INDEXED BY i WHERE b > 5 AND a > ''")
        }
        #expect(found == wanted)
    }

    @Test(
        "A refused file keeps a header whose number of pages is wrong, as old versions wrote it", arguments: [0, 1, 9])
    func refusedHeader(pages: UInt8) throws {
        let (schema, before, change, after) = Self.unseen[3]
        try #require(before.isEmpty && change.isEmpty)
        let file = try LegacyFile { connection in
            try connection.executeScript(text: schema + ";" + Self.rows)
            try connection.editSchema(after)
        }
        var bytes = try Data(contentsOf: URL(filePath: file.path))
        bytes.replaceSubrange(28..<32, with: [0, 0, 0, pages])
        // The header's counters differ in a file that such a version wrote.
        bytes[95] ^= 1
        try bytes.write(to: URL(filePath: file.path))
        let digest = try file.digest()
        let error = try storeError {
            var options = ConversionOptions()
            options.onDamage = .refuse
            _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
        }
        #expect(error?.code == .corrupt)
        #expect(try file.digest() == digest)
    }

    @Test(
        "A full-text index that its module cannot read is copied, with a warning, beside a damaged index too",
        .enabled(if: Engine.current.wasBuilt(with: "ENABLE_FTS5")), arguments: [OnDamage.refuse, .rebuildIndexes])
    func unreadableModule(onDamage: OnDamage) throws {
        let file = try LegacyFile { connection in
            // The pointer map is read only by SQLite's own check.
            try connection.executeScript(
                text: "PRAGMA auto_vacuum = 1; CREATE VIRTUAL TABLE ft USING fts5(body); "
                    + "INSERT INTO ft VALUES ('one two'), ('three'); UPDATE ft_data SET block = x'00' WHERE id = 10; "
                    + "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a);" + Self.rows)
            if onDamage == .rebuildIndexes {
                try connection.editSchema("UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(b)' WHERE name = 'i'")
            }
        }
        func content(_ connection: Connection) throws -> [String] {
            try [
                "id || quote(block) FROM ft_data", "id || c0 FROM ft_content", "id || quote(sz) FROM ft_docsize",
                "a || b FROM t NOT INDEXED",
            ].flatMap { try connection.values(String.self, SQL(text: "SELECT \($0)")) }
        }
        let original = try file.readOriginal(content)
        var options = ConversionOptions()
        options.onDamage = onDamage
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
        #expect(try file.read(key: TestKeys.raw(), content) == original)
        // Since SQLite 3.44, the check calls modules.
        let isCalled = Engine.current.sqliteVersionNumber >= 3_044_000
        #expect(isCalled == report.warnings.contains { $0.contains("ft") }, "\(report.warnings)")
    }

    @Test(
        "An FTS5 table that lacks a shadow table, or whose index states a huge size, does not count as a forged page",
        .enabled(if: Engine.current.wasBuilt(with: "ENABLE_FTS5")),
        arguments: [
            "DELETE FROM sqlite_master WHERE name = 'ft_docsize'",
            "UPDATE ft_data SET block = x'000000000101000087ffffff7f' WHERE id = 10",
        ])
    func brokenModule(change: String) throws {
        func make() throws -> LegacyFile {
            try LegacyFile { connection in
                try connection.executeScript(
                    text: "PRAGMA auto_vacuum = 1; CREATE VIRTUAL TABLE ft USING fts5(body); "
                        + "INSERT INTO ft VALUES ('one two'), ('three'); CREATE TABLE t(a TEXT, b); "
                        + "CREATE INDEX i ON t(a);" + Self.rows)
                try connection.editSchema(change)
            }
        }
        let refused = try make()
        let error = try storeError {
            var options = ConversionOptions()
            options.onDamage = .refuse
            return try EncryptionUpgrade(path: refused.path, provider: TestKeys.provider(), options: options).run()
        }
        #expect(error == nil || error?.code == .corrupt, "\(error)")
        let file = try make()
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.rows > 2500)
        let found = try Verification.run(
            at: DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()])
        #expect(!found.complaints.contains { $0.contains("not authentic") }, "\(found)")
    }

    @Test("The warnings about damaged indexes contain each index's whole name and the first missing row")
    func namesDamage() throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE t(a, b); CREATE INDEX by2 ON t(a); CREATE INDEX by3 ON t(b);
                    CREATE TEMP TABLE entries AS SELECT * FROM sqlite_master WHERE type = 'index'
                    """)
            try connection.editSchema("DELETE FROM sqlite_master WHERE type = 'index'")
            try connection.executeScript(text: "INSERT INTO t VALUES (1, 2), (3, 4)")
            try connection.editSchema("INSERT INTO sqlite_master SELECT * FROM entries")
        }
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        for index in ["by2", "by3"] {
            let warning = "row 1 missing from index \(index), and 1 more message of this kind"
            #expect(report.warnings.contains { $0.hasSuffix(warning) }, "\(report.warnings)")
        }
        #expect(report.rebuiltIndexes == ["by2", "by3"])
    }

    /// Makes a database with one changed index.
    ///
    /// A table over the index's b-tree made the change.
    private static func file(_ test: Case) throws -> LegacyFile {
        try LegacyFile { connection in
            try connection.executeScript(text: test.schema + ";" + rows)
            try connection.editSchema(
                """
                INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql)
                SELECT 'table', 'entries', 'entries', rootpage, 'CREATE TABLE entries\(test.entries) WITHOUT ROWID'
                FROM sqlite_master WHERE name = '\(test.index)'
                """)
            try connection.executeScript(text: test.damage)
            try connection.executeScript("DROP TABLE IF EXISTS sorted")
            try connection.editSchema("DELETE FROM sqlite_master WHERE name = 'entries';" + test.edit)
        }
    }

    @Test("A damaged index is rebuilt from the rows, and the report names it", arguments: cases)
    func heals(test: Case) throws {
        let file = try Self.file(test)
        let before = try file.originalDump()
        #expect(try file.readOriginal { try $0.value(String.self, "PRAGMA integrity_check") } != "ok")
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.outcome == .encrypted)
        #expect(report.rows == 2_500)
        #expect(report.backup == nil)
        #expect(report.warnings.contains { $0.contains("rebuilt from the rows") }, "\(report.warnings)")
        #expect(Set(report.warnings).count == report.warnings.count, "\(report.warnings)")
        let result = try file.dump(key: TestKeys.raw())
        #expect(result == before, "\(result.differences(from: before))")
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA integrity_check") } == "ok")
        let verification = try Verification.run(
            at: DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()])
        #expect(verification.isSound, "\(verification.complaints)")
    }

    @Test("An index that only the app can compute does not hide damage in another table's index")
    func uncheckable() throws {
        let file = try Self.file(
            Case(
                testDescription: "",
                schema: "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a COLLATE RTRIM); "
                    + "CREATE TABLE u(b); INSERT INTO u VALUES ('x'); CREATE INDEX j ON u(length(b))",
                index: "i", entries: "(a, r, PRIMARY KEY(a COLLATE RTRIM, r))",
                damage: "DELETE FROM entries WHERE r = 9",
                edit: "UPDATE sqlite_master SET sql = replace(sql, 'length', 'app_hash') WHERE name = 'j'"))
        let before = try file.digest()
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider())
        if Engine.current.sqliteVersionNumber >= 3_033_000 {
            // The index would be filled from the rows, but index j needs a function that is missing.
            #expect(try storeError { try upgrade.run() }?.code == .missingFunction)
            #expect(try file.digest() == before)
        } else {
            let warnings = try upgrade.run().warnings
            #expect(warnings.contains { $0.contains("the indexes of table t were not compared with its rows") })
        }
    }

    @Test("An index that only the app can compute is reported as unchecked")
    func unchecked() throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                "CREATE TABLE u(b); INSERT INTO u VALUES ('x'), ('y'); CREATE INDEX j ON u(length(b))")
            try connection.editSchema("UPDATE sqlite_master SET sql = replace(sql, 'length', 'app_hash')")
        }
        let before = try file.originalDump()
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.warnings.besidesLeases.count == 1)
        #expect(
            report.warnings.besidesLeases.first?.hasPrefix("the indexes of table u were not compared with its rows: ")
                == true)
        #expect(try file.dump(key: TestKeys.raw()) == before)
    }

    @Test(
        "A CHECK that computes for hours does not delay the upgrade, and the report says so",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_020_000), .timeLimit(.minutes(20)))
    func endlessCheck() throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                text: "CREATE TABLE t(a); WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
                    + "INSERT INTO t SELECT i FROM n")
            try connection.editSchema(
                "UPDATE sqlite_master SET sql = "
                    + "'CREATE TABLE t(a CHECK (length(replace(hex(zeroblob(400000)), ''0'', ''1'')) > a))'")
        }
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(
            report.warnings.besidesLeases == [
                "the CHECK constraints could not be evaluated for all rows within the time limit"
            ])
    }

    @Test("Duplicates under a damaged UNIQUE index are refused with the index's name and the number of keys")
    func duplicates() throws {
        let test = Case(
            testDescription: "", schema: "CREATE TABLE t(a TEXT, b UNIQUE)", index: "sqlite_autoindex_t_1",
            entries: "(b, r, PRIMARY KEY(b, r))", damage: "")
        let file = try LegacyFile(unclosed: true) { connection in
            try connection.execute("PRAGMA journal_mode = WAL")
            try connection.executeScript(text: test.schema)
            try connection.executeScript("INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3), ('d', NULL), ('e', NULL)")
            // Without its index, the table accepts any rows.
            try connection.editSchema(
                "UPDATE sqlite_master SET sql = 'CREATE TABLE t(a TEXT, b)' WHERE name = 't'; "
                    + "UPDATE sqlite_master SET name = 'i', sql = 'CREATE INDEX i ON t(b)' WHERE type = 'index'")
            try connection.executeScript("INSERT INTO t VALUES ('f', 1), ('g', 2), ('h', 2)")
            try connection.editSchema(
                "UPDATE sqlite_master SET sql = 'CREATE TABLE t(a TEXT, b UNIQUE)' WHERE name = 't'; "
                    + "UPDATE sqlite_master SET name = 'sqlite_autoindex_t_1', sql = NULL WHERE type = 'index'")
        }
        let before = try file.originalDump()
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider())
        let error = try #require(try storeError { try upgrade.run() })
        #expect(error.code == .corrupt)
        #expect(error.detail.contains("sqlite_autoindex_t_1"), "\(error.detail)")
        #expect(error.detail.contains("2 keys occur more than once"), "\(error.detail)")
        #expect(try file.startsAsPlaintext)
        #expect(try file.dump(key: nil) == before)
        #expect(try file.read(key: nil) { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
    }

    static let sound = [
        "CREATE TABLE t(a); CREATE INDEX i ON t(a COLLATE NOCASE DESC); "
            + "INSERT INTO t VALUES (CAST(x'610062' AS TEXT)), (CAST(x'410063' AS TEXT)), ('ab'), ('A'), (x'41'), (NULL)",
        "CREATE TABLE t(a REAL, b NUMERIC); CREATE INDEX i ON t(a, b DESC); CREATE INDEX j ON t(b DESC, a); "
            + "INSERT INTO t VALUES (1, 1.5), (-0.0, 9007199254740993), (0, 9007199254740992.0), (9e999, -9e999), "
            + "(1.5, 9223372036854775807), (9223372036854775807, 'x'), (NULL, NULL), (-1e300, x'00')",
        "CREATE TABLE t(id INTEGER PRIMARY KEY DESC, a UNIQUE); INSERT INTO t VALUES (3, 'c'), (1, 'a'), (2, NULL), (4, NULL); "
            + "ALTER TABLE t ADD COLUMN late DEFAULT 'x'; CREATE INDEX i ON t(late, id)",
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); CREATE INDEX i ON t(a, id); CREATE UNIQUE INDEX j ON t(a, b, id); "
            + "INSERT INTO t VALUES (-5, 1, 2), (7, 1, 2), (9223372036854775807, NULL, NULL)",
        "CREATE TABLE t(a COLLATE RTRIM, b, PRIMARY KEY(b DESC, a)) WITHOUT ROWID; CREATE INDEX i ON t(a, b); "
            + "INSERT INTO t VALUES ('x  ', 1), ('x', 2), ('y ', 1)",
    ]

    @Test("Sound indexes with unusual values are not reported as damaged", arguments: sound)
    func noFalseAlarm(script: String) throws {
        for encoding in ["UTF-8", "UTF-16le"] {
            let file = try LegacyFile { connection in
                try connection.execute(SQL(text: "PRAGMA encoding = '\(encoding)'"))
                try connection.executeScript(text: script)
            }
            #expect(try file.readOriginal { try $0.value(String.self, "PRAGMA integrity_check") } == "ok")
            let before = try file.originalDump()
            let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
            #expect(report.warnings.besidesLeases == [])
            #expect(try file.dump(key: TestKeys.raw()) == before)
        }
    }

    static let forbidden = [
        ("b NOT NULL", "table t has rows with NULL in column b, although the column is declared NOT NULL"),
        ("b CHECK (b <> 3)", "CHECK constraint failed in t"),
    ]

    @Test("Values that their table forbids are kept, and the report says so", arguments: forbidden)
    func forbiddenValues(column: String, warning: String) throws {
        // Engines before SQLite 3.20 do not check CHECK constraints, so verify does not either.
        guard !column.contains("CHECK") || Engine.current.sqliteVersionNumber >= 3_020_000 else { return }
        let file = try LegacyFile { connection in
            try connection.executeScript("CREATE TABLE t(a, b); INSERT INTO t VALUES (1, NULL), (2, 3)")
            try connection.editSchema(
                "UPDATE sqlite_master SET sql = 'CREATE TABLE t(a, \(column))' WHERE name = 't'")
        }
        let before = try file.originalDump()
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.warnings.besidesLeases == [warning])
        #expect(try file.dump(key: TestKeys.raw()) == before)
    }
}
