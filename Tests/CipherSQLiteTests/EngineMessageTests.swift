internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// Facts that only the engine's messages contain, in the words of the linked engine.
struct EngineMessageTests {
    private static let table = "CREATE TABLE t (a); INSERT INTO t VALUES (1)"

    @Test("A schema that cannot be parsed is distinguished from a damaged page")
    func malformedSchema() throws {
        let fixture = try EngineFixture()
        let connection = try fixture.open()
        try connection.executeScript(text: Self.table)
        try connection.executeScript(
            text: "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE t (a NEWER THAN,,)'")
        connection.close()
        let error = try databaseError { try fixture.open().value(Int.self, "SELECT count(*) FROM t") }
        #expect(error.isCorrupt && error.isMalformedSchema, "\(error)")
        let other = DatabaseError(extendedCode: DatabaseError.corrupt, message: "database disk image is malformed")
        #expect(!other.isMalformedSchema)
    }

    @Test("Changing a view without a trigger is distinguished from a statement that does not compile")
    func viewWithoutTrigger() throws {
        let fixture = try EngineFixture()
        let connection = try fixture.open()
        try connection.executeScript(text: Self.table + "; CREATE VIEW v AS SELECT a FROM t")
        for sql in ["DELETE FROM v", "UPDATE v SET a = NULL", "INSERT INTO v (a) SELECT NULL"] {
            let error = try databaseError { try connection.execute(SQL(text: sql)) }
            #expect(error.isOfViewWithoutTrigger, "\(error)")
        }
        let other = try databaseError { try connection.execute("DELETE FROM nosuch") }
        #expect(!other.isOfViewWithoutTrigger)
    }

    @Test(
        "A page 1 with a readable header that is not authentic is distinguished from SQL that fails",
        .enabled(if: Engine.current.defaultCompatibility >= 4))
    func unexplained() throws {
        let fixture = try EngineFixture()
        var settings = CipherSettings()
        settings.plaintextHeaderSize = 32
        let connection = try fixture.open(TestKeys.rawWithSalt(1), settings)
        try connection.executeScript(text: Self.table)
        let sql = try databaseError { try connection.execute("SELECT nosuch FROM t") }
        #expect(!sql.isNotAuthentic)
        connection.close()
        let error = try databaseError { try fixture.open(TestKeys.rawWithSalt(2), settings) }
        #expect(error.isNotAuthentic || error.isNotADatabase, "\(error)")
    }
}
