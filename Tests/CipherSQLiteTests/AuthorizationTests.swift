internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

struct AuthorizationTests {
    let folder: TemporaryFolder
    let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(path: folder.path("app.db"), mode: .create)
        try connection.executeScript("CREATE TABLE t (a, b)")
    }

    @Test(
        "The statement judge is told what each statement would do",
        arguments: [
            ("CREATE TABLE u (x)", .createTable), ("ALTER TABLE t ADD COLUMN c", .alterTable),
            ("DROP TABLE t", .dropTable), ("CREATE INDEX i ON t (a)", .definition),
            ("CREATE VIEW v AS SELECT 1", .definition), ("INSERT INTO t VALUES (1, 2)", .insert),
            ("UPDATE t SET b = 1", .update), ("DELETE FROM t", .delete), ("BEGIN", .transaction),
            ("SAVEPOINT s", .savepoint), ("ATTACH ':memory:' AS m", .attach), ("PRAGMA user_version", .pragma),
        ] as [(String, StatementAction.Kind)])
    func kinds(sql: String, expected: StatementAction.Kind) throws {
        var kinds: [StatementAction.Kind] = []
        try connection.judging(by: {
            kinds.append($0.kind)
            return true
        }) { try connection.execute(SQL(text: sql)) }
        #expect(kinds.contains(expected))
    }

    @Test("The statement judge also refuses statements compiled before it was set, and none after it is removed")
    func compiledBefore() throws {
        try connection.transaction { try connection.execute("INSERT INTO t VALUES (1, 2)") }
        let error = #expect(throws: DatabaseError.self) {
            try connection.judging(by: { $0.kind != .insert }) {
                try connection.execute("INSERT INTO t VALUES (1, 2)")
            }
        }
        #expect(error?.isPermission == true)
        try connection.execute("INSERT INTO t VALUES (1, 2)")
        #expect(try connection.value(Int.self, "SELECT count(*) FROM t") == 2)
    }

    @Test("The statement judge gets the names of the table, the column and the trigger")
    func subjects() throws {
        try connection.executeScript(
            "CREATE TABLE log (x); CREATE TRIGGER r AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (1); END")
        var actions: [StatementAction] = []
        try connection.judging(by: {
            actions.append($0)
            return true
        }) { try connection.execute("UPDATE t SET b = 1") }
        let update = try #require(actions.first { $0.kind == .update })
        #expect(update.subject == "t")
        #expect(update.detail == "b")
        #expect(update.cause == nil)
        #expect(actions.first { $0.kind == .insert }?.cause == "r")
    }
}
