internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Testing

struct StepUniquenessTests {
    private static func fixture(_ update: String) throws -> StepsFixture {
        let fixture = try StepsFixture(
            [
                "sql_default.plist": #"["CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT)"]"#,
                "sql_update_2.plist": #"["CREATE TABLE u (x)"]"#, "sql_update_3.plist": update,
            ],
            extra: """
                , "recordedVersion": {"source": "userVersion"}, "destructiveSteps": ["sql_update_3.plist"]
                """)
        try fixture.write { connection in
            try connection.executeScript(
                """
                PRAGMA journal_mode = WAL;
                CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT); CREATE TABLE u (x);
                INSERT INTO t(n) VALUES ('a'), ('b'), ('a'), ('B'), (NULL), (NULL); PRAGMA user_version = 2
                """)
        }
        return fixture
    }

    @Test(
        "A pending step's unique index that the rows violate is refused before anything is encrypted or changed",
        arguments: [
            (#"["CREATE UNIQUE INDEX t_n ON t(n)"]"#, "1 value of t"),
            (
                #"["ALTER TABLE t ADD COLUMN m TEXT", "CREATE UNIQUE INDEX IF NOT EXISTS t_n ON t(n DESC)"]"#,
                "1 value of t"
            ),
            (#"["CREATE UNIQUE INDEX t_n ON t(lower(n)) WHERE id > 1"]"#, "1 value of t"),
            (#"["CREATE UNIQUE INDEX t_n ON t(lower(n))"]"#, "2 values of t"),
        ])
    func refusesDuplicates(update: String, expected: String) throws {
        let error = try Self.fixture(update).refusal()
        #expect(error.code == .migration)
        #expect(error.detail.contains("index t_n requires unique values, but \(expected) "), "\(error)")
    }

    @Test(
        "A pending step's unique index is created if the rows allow it, or a step makes them allow it",
        arguments: [
            #"["CREATE UNIQUE INDEX t_n ON t(id, n)"]"#,
            #"["CREATE UNIQUE INDEX t_n ON t(n) WHERE id > 3"]"#,
            #"["DELETE FROM t WHERE id = 3", "CREATE UNIQUE INDEX t_n ON t(n)"]"#,
            #"["ALTER TABLE t ADD COLUMN m TEXT", "CREATE UNIQUE INDEX t_n ON t(m)"]"#,
            #"["ALTER TABLE t RENAME TO s", "CREATE TABLE t (n TEXT)", "CREATE UNIQUE INDEX t_n ON t(n)"]"#,
        ])
    func makesIndex(update: String) throws {
        let fixture = try Self.fixture(update)
        #expect(try fixture.open().outcome == .encrypted)
        let count = try fixture.read {
            try $0.value(Int.self, "SELECT count(*) FROM sqlite_master WHERE name = 't_n'")
        }
        #expect(count == 1)
    }
}
