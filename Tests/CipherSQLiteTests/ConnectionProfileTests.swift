internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// What the connections of each profile let a file and a statement do.
struct ConnectionProfileTests {
    /// A profile, whether its connections refuse SQL that can damage the file, and whether they trust the schema.
    struct Promise: CustomTestStringConvertible, Sendable {
        let name: String
        let isDefensive: Bool
        let trusts: Bool
        let profile: @Sendable (Int64) -> ConnectionProfile

        var testDescription: String { name }
    }

    /// The table of the promises, which repeats nothing of the profiles' own definitions.
    private static let promises = [
        Promise(name: "inspecting", isDefensive: true, trusts: false) { .inspecting($0) },
        Promise(name: "settling", isDefensive: true, trusts: false) { .settling($0) },
        Promise(name: "following", isDefensive: true, trusts: false) { .following($0) },
        Promise(name: "building", isDefensive: false, trusts: false) { .building($0) },
        Promise(name: "recovering", isDefensive: false, trusts: false) { .recovering($0) },
        Promise(name: "proving", isDefensive: true, trusts: false) { .proving($0) },
        Promise(name: "migrating", isDefensive: false, trusts: false) { _ in .migrating },
        Promise(name: "storing", isDefensive: true, trusts: false) { _ in .storing },
        Promise(name: "scratch", isDefensive: false, trusts: true) { _ in .scratch },
    ]

    private let fixture: EngineFixture

    init() throws { fixture = try EngineFixture() }

    private func open(_ promise: Promise) throws -> Connection {
        let maker = try fixture.open()
        try maker.register(SQLFunction("effect", argumentCount: 0, isInnocuous: false) { _ in .integer(1) })
        try maker.executeScript(
            """
            CREATE TABLE t(a); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT effect() AS e FROM t;
            CREATE VIEW plain AS SELECT abs(a) AS e FROM t
            """)
        maker.close()
        let connection = try promise.profile(Connection.size(fixture.path)).open(fixture.path)
        // The caller's own function, which it did not declare innocuous.
        try connection.register(SQLFunction("effect", argumentCount: 0, isInnocuous: false) { _ in .integer(1) })
        return connection
    }

    @Test(
        "A view of the file calls a function of the app only on connections that trust the schema",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_031_000), arguments: promises)
    func trust(promise: Promise) throws {
        let connection = try open(promise)
        #expect(try connection.value(Int.self, "SELECT effect()") == 1)
        #expect(try connection.value(Int.self, "SELECT e FROM plain") == 1)
        if promise.trusts {
            #expect(try connection.value(Int.self, "SELECT e FROM v") == 1)
        } else {
            let error = try databaseError { try connection.value(Int.self, "SELECT e FROM v") }
            #expect(error.code == DatabaseError.generic)
        }
    }

    @Test("Every connection that can write asks for syncs that empty the disk's own cache", arguments: promises)
    func syncs(promise: Promise) throws {
        let connection = try open(promise)
        let isWriter = promise.profile(0).mode != .readOnly
        for pragma in ["fullfsync", "checkpoint_fullfsync"] {
            #expect(try connection.value(Bool.self, SQL(text: "PRAGMA \(pragma)")) == isWriter)
        }
    }

    @Test(
        "A statement can write the schema table only on connections that are not defensive",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_026_000), arguments: promises)
    func defence(promise: Promise) throws {
        let connection = try open(promise)
        try connection.execute("PRAGMA writable_schema = ON")
        let harm: SQL = "DELETE FROM sqlite_master WHERE name = 'plain'"
        if promise.isDefensive {
            #expect(try databaseError { try connection.execute(harm) }.code == DatabaseError.generic)
        } else {
            try connection.execute(harm)
        }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM sqlite_master") == (promise.isDefensive ? 3 : 2))
    }
}
