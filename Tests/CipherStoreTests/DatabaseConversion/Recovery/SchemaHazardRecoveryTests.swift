internal import CipherDatabaseConversion
internal import CipherErrors
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Schemas that need more than SQLite itself, or its newest features.
@Suite struct SchemaHazardRecoveryTests {
    private static let counted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)"

    private func open(_ fixture: RecoveryFixture) throws -> Connection {
        try Connection(path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
    }

    @Test("An app's collation and function are used, and without the collation the recovery is refused")
    func extensions() throws {
        let folder = try TemporaryFolder(inMemory: true)
        let (path, output) = (folder.path("app.db"), folder.path("new.db"))
        let backwards = Collation(name: "backwards") { a, b in
            a.elementsEqual(b) ? 0 : a.lexicographicallyPrecedes(b) ? 1 : -1
        }
        try LegacyFile.write(path) { connection in
            try connection.register(backwards)
            try connection.register(AppExtensions.hash)
            try connection.executeScript(
                text: """
                    PRAGMA page_size = 1024; CREATE TABLE t(a TEXT COLLATE backwards, b); CREATE INDEX t_a ON t(a);
                    CREATE INDEX t_hash ON t(app_hash(a));
                    \(Self.counted) INSERT INTO t SELECT 'row ' || i, i FROM n;
                    """)
        }
        var data = try Data(contentsOf: URL(filePath: path))
        // Overwrites the root of the table.
        data.replaceSubrange(1024..<2048, with: Data(count: 1024))
        try data.write(to: URL(filePath: path))
        func recover(_ extensions: SQLExtensions) throws -> RecoveryReport {
            var options = ConversionOptions()
            options.extensions = extensions
            return try DatabaseRecovery(
                of: DatabasePaths(path), provider: TestKeys.provider(), formats: [CipherSettings()], to: output,
                targetProvider: nil, template: nil, options: options
            ).run()
        }
        let before = try FolderDigest(folder.url)
        #expect(try storeError { _ = try recover(SQLExtensions()) }?.code == .missingCollation)
        #expect(try FolderDigest(folder.url) == before)
        let report = try recover(SQLExtensions(collations: [backwards], functions: [AppExtensions.hash]))
        #expect(report.tables.map(\.rows) == [600] && report.complete, "\(report)")
        let connection = try Connection(
            path: output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        try connection.register(backwards)
        try connection.register(AppExtensions.hash)
        #expect(try connection.value(String.self, "SELECT a FROM t INDEXED BY t_a ORDER BY a LIMIT 1") == "row 99")
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    @Test(
        "Statistics are recovered, also those that the linked SQLite does not use",
        arguments: [
            ("sqlite_stat1", "(tbl,idx,stat)"), ("sqlite_stat2", "(tbl,idx,sampleno,sample)"),
            ("sqlite_stat3", "(tbl,idx,neq,nlt,ndlt,sample)"), ("sqlite_stat4", "(tbl,idx,neq,nlt,ndlt,sample)"),
        ])
    func statistics(name: String, columns: String) throws {
        let folder = try TemporaryFolder(inMemory: true)
        let (path, output) = (folder.path("app.db"), folder.path("new.db"))
        try LegacyFile.write(path) { connection in
            try connection.executeScript(
                text: "CREATE TABLE t(a); CREATE TABLE s\(columns); INSERT INTO s(rowid, tbl, idx) VALUES (4, 't', 'i')"
            )
            try connection.editSchema(
                "UPDATE sqlite_master SET name = '\(name)', tbl_name = '\(name)', "
                    + "sql = 'CREATE TABLE \(name)\(columns)' WHERE name = 's'")
        }
        let report = try DatabaseRecovery(
            of: DatabasePaths(path), provider: TestKeys.provider(), formats: [CipherSettings()], to: output,
            targetProvider: nil, template: nil, options: ConversionOptions()
        ).run()
        #expect(report.complete, "\(report)")
        let connection = try Connection(
            path: output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        let row = try connection.value(String.self, SQL(text: "SELECT rowid || tbl || idx FROM \(name)"))
        #expect(row == "4ti")
    }

    @Test("Definitions that SQLite reads, but no longer creates, are recovered as they are")
    func oldDefinitions() throws {
        let folder = try TemporaryFolder(inMemory: true)
        let definitions = [
            (
                "table", "c",
                "CREATE TABLE c(a INTEGER PRIMARY KEY, b TEXT, FOREIGN KEY(b COLLATE nocase) REFERENCES p(x))"
            ),
            ("table", "c", "CREATE TABLE c(a INTEGER PRIMARY KEY, b TEXT UNIQUE, FOREIGN KEY(b ASC) REFERENCES p(x))"),
            ("table", "c", "CREATE TABLE c(a INTEGER PRIMARY KEY, b TEXT, FOREIGN KEY(b) REFERENCES p(x DESC))"),
            ("trigger", "g", "CREATE TRIGGER g AFTER INSERT ON c BEGIN SELECT ?1; END"),
        ]
        for (number, (type, name, sql)) in definitions.enumerated() {
            let (path, output) = (folder.path("\(number).db"), folder.path("\(number)-new.db"))
            let isUnique = sql.contains("UNIQUE")
            try LegacyFile.write(
                path,
                script: """
                    CREATE TABLE p(x TEXT PRIMARY KEY);
                    CREATE TABLE c(a INTEGER PRIMARY KEY, b TEXT\(isUnique ? " UNIQUE" : ""));
                    CREATE TRIGGER g AFTER INSERT ON c BEGIN SELECT 1; END; CREATE VIEW v AS SELECT a, 1 AS b FROM c;
                    \(Self.counted) INSERT INTO c SELECT i, 'row ' || i FROM n;
                    PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = '\(sql)' WHERE name = '\(name)';
                    """)
            let source = try Connection(path: path, mode: .readOnly)
            defer { source.close() }
            try #require(try source.value(Int.self, "SELECT count(*) FROM c") == 600, "\(sql)")
            let report = try DatabaseRecovery(
                of: DatabasePaths(path), provider: TestKeys.provider(), formats: [], to: output, targetProvider: nil,
                template: nil, options: ConversionOptions()
            ).run()
            #expect(report.complete, "\(sql) \(report)")
            let made = try Connection(path: output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
            defer { made.close() }
            let schema: SQL = "SELECT type || name || tbl_name || coalesce(sql, '') FROM sqlite_master ORDER BY 1"
            #expect(try made.values(String.self, schema) == source.values(String.self, schema), "\(type) \(sql)")
            #expect(try RowPlaces.rows(made) == RowPlaces.rows(source))
        }
    }

    @Test(
        "A view or trigger whose entry has another name than its SQL makes a recovery incomplete",
        arguments: ["v", "g"])
    func renamed(name: String) throws {
        let folder = try TemporaryFolder(inMemory: true)
        let (path, output) = (folder.path("app.db"), folder.path("new.db"))
        // SQLite does not read such a schema.
        try LegacyFile.write(
            path,
            script: """
                CREATE TABLE t(a); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT a FROM t;
                CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END;
                PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = 'other' WHERE name = '\(name)';
                """)
        let report = try DatabaseRecovery(
            of: DatabasePaths(path), provider: TestKeys.provider(), formats: [], to: output, targetProvider: nil,
            template: nil, options: ConversionOptions()
        ).run()
        #expect(!report.complete && report.rows == 1, "\(report)")
        let connection = try Connection(path: output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM sqlite_master") == 2)
    }

    @Test(
        "A definition that SQLite executes but does not read back costs its own table, and no other",
        arguments: [
            "CREATE TABLE g AS SELECT 1 AS a, 2 AS b", "CREATE TABLE main.g(a, b)",
            "create table if not exists g as select * from t",
        ])
    func executedOnly(sql: String) throws {
        let folder = try TemporaryFolder(inMemory: true)
        let (path, output) = (folder.path("app.db"), folder.path("new.db"))
        try LegacyFile.write(
            path,
            script: """
                CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b); \(Self.counted) INSERT INTO t SELECT i, i FROM n;
                CREATE TABLE g(a, b); INSERT INTO g VALUES (1, 2);
                PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = '\(sql)' WHERE name = 'g';
                """)
        let report = try DatabaseRecovery(
            of: DatabasePaths(path), provider: TestKeys.provider(), formats: [], to: output, targetProvider: nil,
            template: nil, options: ConversionOptions()
        ).run()
        #expect(!report.complete, "\(report)")
        let connection = try Connection(path: output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM t") == 600)
        #expect(try connection.value(Int.self, "SELECT count(*) FROM lost_and_found") == 1)
    }

    @Test("A table may have a name that the recovery uses itself, and the size of the cache is kept")
    func ownNames() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE cipherstore_own(a); CREATE TABLE cipherstore_own_(a); CREATE TABLE cipherstore_held(a);
                CREATE TABLE cipherstore_root_0(a); CREATE TABLE cipherstore_recovered_0(a);
                CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (7);
                INSERT INTO cipherstore_own VALUES (1); INSERT INTO cipherstore_held VALUES (2);
                """, before: "PRAGMA default_cache_size = 777;")
        #expect(try fixture.recover().complete)
        try fixture.check(lost: [])
        let connection = try open(fixture)
        defer { connection.close() }
        #expect(try connection.value(Int.self, "PRAGMA default_cache_size") == 777)
        #expect(try connection.value(Int.self, "SELECT seq FROM sqlite_sequence") == 7)
    }

    @Test("Of more tables than are tried at a time, each is recovered with its indexes, views and triggers")
    func manyTables() throws {
        let fixture = try RecoveryFixture(
            script: (1...450).map {
                """
                CREATE TABLE t\($0)(a INTEGER PRIMARY KEY, b TEXT UNIQUE); CREATE INDEX i\($0) ON t\($0)(b, a);
                CREATE VIEW v\($0) AS SELECT b FROM t\($0 % 450 + 1);
                CREATE TRIGGER g\($0) INSTEAD OF INSERT ON v\($0) BEGIN INSERT INTO t\($0)(b) VALUES (new.b); END;
                INSERT INTO t\($0) VALUES (\($0), 'row \($0)');
                """
            }.joined(separator: "\n"))
        #expect(try fixture.recover().complete)
        try fixture.check(lost: [])
        let source = try Connection(path: fixture.path, mode: .readOnly)
        defer { source.close() }
        let made = try open(fixture)
        defer { made.close() }
        let schema: SQL = "SELECT type || name || tbl_name || coalesce(sql, '') FROM sqlite_master ORDER BY 1"
        #expect(try made.values(String.self, schema) == source.values(String.self, schema))
    }

    @Test(
        "STRICT tables and generated columns are recovered, even if the root is lost",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_037_000))
    func newest() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE s(id INTEGER PRIMARY KEY, a INT NOT NULL, b TEXT, c ANY) STRICT;
                CREATE TABLE g(a INTEGER, v AS (a * 2), s TEXT AS ('n' || a) STORED, b TEXT); CREATE INDEX g_v ON g(v);
                CREATE INDEX g_s ON g(s);
                \(Self.counted) INSERT INTO s SELECT i, i * 2, 'text ' || i, CASE i % 2 WHEN 0 THEN i / 4.0 ELSE x'01' END FROM n;
                \(Self.counted) INSERT INTO g(a, b) SELECT i, 'row ' || i FROM n;
                """)
        let lost = try Set(["s", "g"].map { try #require(fixture.places.roots[$0]) })
        try fixture.damage(lost)
        try fixture.recover()
        try fixture.check(lost: lost)
        let connection = try open(fixture)
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM g WHERE v = a * 2 AND s = 'n' || a") == 600)
        #expect(try connection.value(Int.self, "SELECT a FROM g INDEXED BY g_s WHERE s = 'n77'") == 77)
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    @Test(
        "An R-tree keeps the contents of its shadow tables",
        .enabled(if: Engine.current.wasBuilt(with: "ENABLE_RTREE")))
    func rtree() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE VIRTUAL TABLE place USING rtree(id, x0, x1); CREATE TABLE t(a);
                \(Self.counted) INSERT INTO place SELECT i, i, i + 1 FROM n; INSERT INTO t SELECT id FROM place;
                """)
        let lost = try #require(fixture.places.roots["t"])
        try fixture.damage([lost])
        let report = try fixture.recover()
        let connection = try open(fixture)
        defer { connection.close() }
        #expect(
            try connection.values(Int.self, "SELECT id FROM place WHERE x0 >= 100 AND x1 <= 103 ORDER BY id")
                == [100, 101, 102], "\(report)")
        #expect(try connection.value(Int.self, "SELECT count(*) FROM place") == 600)
    }

    @Test(
        "A damaged R-tree keeps its other pages, and the errors that its module finds are reported",
        .enabled(if: Engine.current.wasBuilt(with: "ENABLE_RTREE")))
    func damagedRtree() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE VIRTUAL TABLE box USING rtree(id, low, high);
                \(Self.counted) INSERT INTO box SELECT i, i, i + 1 FROM n;
                """)
        let root = try #require(fixture.places.roots["box_parent"])
        try fixture.damage([root])
        let report = try fixture.recover()
        #expect(!report.complete, "\(report)")
        #expect(report.notes.contains { $0.contains("RTree") } || !Engine.current.checksTables, "\(report)")
        try fixture.check(lost: [root])
    }

    @Test("The counter of a table with a non-Unicode name is recovered from an unreferenced page")
    func counterOfBytes() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE QQA(id INTEGER PRIMARY KEY AUTOINCREMENT, b); INSERT INTO QQA VALUES (900, 'x');
                DELETE FROM QQA WHERE id = 900; INSERT INTO QQA VALUES (5, 'y');
                """)
        // Changes the name both in the schema and in the counter's row.
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        var count = 0
        while let place = data.firstRange(of: Data("QQA".utf8)) {
            data.replaceSubrange(place, with: [0x74, 0xff, 0xfe])
            count += 1
        }
        try #require(count == 4)
        try data.write(to: URL(filePath: fixture.path))
        let folder = try TemporaryFolder(inMemory: true)
        try data.write(to: URL(filePath: folder.path("healthy.db")))
        try fixture.damage([1])
        let report = try fixture.recover(template: folder.path("healthy.db"))
        let connection = try open(fixture)
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT seq FROM sqlite_sequence") == 900)
        #expect(
            try connection.value(String.self, "SELECT hex(name) FROM sqlite_sequence") == "74FFFE", "\(report)")
    }

    @Test("A run that is canceled while it reads leaves nothing")
    func interrupted() throws {
        let fixture = try RecoveryFixture()
        try fixture.damage([3])
        let before = try FolderDigest(fixture.folder.url)
        var options = ConversionOptions()
        let cancellation = UpgradeCancellation()
        options.cancellation = cancellation
        options.progress = { if $0.stage == .building { cancellation.cancel() } }
        let error = try storeError {
            _ = try DatabaseRecovery(
                of: DatabasePaths(fixture.path), provider: TestKeys.provider(), formats: [CipherSettings()],
                to: fixture.output, targetProvider: nil, template: nil, options: options
            ).run()
        }
        #expect(error?.code == .cancelled)
        #expect(try FolderDigest(fixture.folder.url) == before)
    }
}
