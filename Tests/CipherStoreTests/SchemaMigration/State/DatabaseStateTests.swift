internal import CipherCatalog
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct DatabaseStateTests {
    @Test(
        "The state of a database is read again each time, even after another connection has changed it",
        arguments: MigrationFixture.Form.all)
    func isReadAnew(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, "CREATE TABLE a(x); CREATE TABLE b(x); CREATE TABLE c(x)")
        try fixture.with { connection in
            func tables() throws -> [String: [String]] {
                let state = try DatabaseState(of: connection) { nil }
                return Dictionary(uniqueKeysWithValues: state.tables.map { ($0.name, $0.columns.map(\.name)) })
            }
            let before = try tables()
            #expect(before == ["a": ["x"], "b": ["x"], "c": ["x"]])
            try fixture.with {
                try $0.executeScript(
                    "ALTER TABLE a ADD COLUMN y REFERENCES c(x); DROP TABLE b; CREATE TABLE b(z); CREATE TABLE d(x)")
            }
            let after = try tables()
            #expect(after == ["a": ["x", "y"], "b": ["z"], "c": ["x"], "d": ["x"]])
            try connection.execute("ALTER TABLE c ADD COLUMN w")
            let own = try tables()
            #expect(own["c"] == ["x", "w"])
            let state = try DatabaseState(of: connection) { nil }
            #expect(state.table("A")?.references == [SQLName("C")])
        }
    }

    @Test("The state of a database asks for the app's record only while CipherStore has none")
    func asksForRecord() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), "PRAGMA user_version = 7")
        try fixture.with { connection in
            #expect(try DatabaseState(of: connection) { 3 }.recorded == 3)
            try HistoryTable.append(.openedPlaintext, in: connection)
            #expect(try DatabaseState(of: connection) { 3 }.recorded == 3)
            try HistoryTable.append(.adopted, in: connection)
            #expect(try DatabaseState(of: connection) { 3 }.recorded == 7)
        }
    }

    @Test("The state of a database includes virtual tables with unloaded modules, without querying them")
    func toleratesUnknownModules() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE a(x);
            PRAGMA writable_schema = ON;
            INSERT INTO sqlite_master VALUES ('table', 'far', 'far', 0, 'CREATE VIRTUAL TABLE far USING nosuch(x)');
            """)
        let report = try fixture.launch(.declaring(["a": ["x": "", "y": ""]], destructiveChanges: .allow))
        #expect(report.applied.map(\.kind) == [.addColumn, .stamp])
        #expect(report.withheld.map(\.table) == ["far"])
    }
}
