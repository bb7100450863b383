internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// What the connections of each profile let a file and a statement do.
struct ConnectionProfileTests {
    /// A profile, whether its connections refuse SQL that can damage the file, whether they trust the schema, and what
    /// they let a statement compute.
    struct Promise: CustomTestStringConvertible, Sendable {
        let name: String
        let isDefensive: Bool
        let trusts: Bool
        /// Whether calls of functions that could take long are refused.
        let bounds: Bool
        /// Returns the length in bytes that a value may have beside a file of a size; `nil` if only SQLite limits it.
        var longest: (@Sendable (Int64) -> Int64)?
        let profile: @Sendable (Int64) -> ConnectionProfile

        var testDescription: String { name }
    }

    /// The table of the promises, which repeats nothing of the profiles' own definitions.
    private static let promises = [
        Promise(name: "inspecting", isDefensive: true, trusts: false, bounds: true, longest: { $0 + 65_536 }) {
            .inspecting($0)
        },
        Promise(name: "settling", isDefensive: true, trusts: false, bounds: true, longest: { $0 + 65_536 }) {
            .settling($0)
        },
        Promise(
            name: "following", isDefensive: true, trusts: false, bounds: true,
            longest: { max($0, 2_097_152) * 8 + 65_536 }
        ) { .following($0) },
        Promise(name: "building", isDefensive: false, trusts: false, bounds: true, longest: { $0 + 196_608 }) {
            .building($0)
        },
        Promise(name: "recovering", isDefensive: false, trusts: false, bounds: true, longest: { $0 + 65_536 }) {
            .recovering($0)
        },
        Promise(name: "proving", isDefensive: true, trusts: false, bounds: true, longest: { $0 + 65_536 }) {
            .proving($0)
        },
        Promise(name: "migrating", isDefensive: false, trusts: false, bounds: true) { _ in .migrating },
        Promise(name: "storing", isDefensive: true, trusts: false, bounds: false) { _ in .storing },
        Promise(name: "checking", isDefensive: true, trusts: false, bounds: true) { _ in .checking },
        Promise(name: "scratch", isDefensive: false, trusts: true, bounds: false) { _ in .scratch },
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

    @Test("A call that could take long is refused only on connections with bounded functions", arguments: promises)
    func functions(promise: Promise) throws {
        let connection = try open(promise)
        try connection.allowLongResults()
        // Only the lengths are those of a long search: the first character is found nowhere.
        let call: SQL = "SELECT instr(hex(zeroblob(1900000)), '1' || hex(zeroblob(900000)))"
        if promise.bounds {
            let error = try databaseError { try connection.value(Int.self, call) }
            #expect(error.code == DatabaseError.generic)
            #expect(error.message.contains("instr() was refused"), "\(error.message)")
        } else {
            #expect(try connection.value(Int.self, call) == 0)
        }
    }

    @Test("A value may be as long as the profile allows beside a file of a size, and no longer", arguments: promises)
    func lengths(promise: Promise) throws {
        try open(promise).close()
        for size in [try Connection.size(fixture.path), 3 << 20] {
            let connection = try promise.profile(size).open(fixture.path)
            defer { connection.close() }
            func length(_ count: Int64) throws -> Int64? {
                try connection.value(Int64.self, "SELECT length(zeroblob(\(count)))")
            }
            let longest = promise.longest?(size) ?? 100 << 20
            #expect(try length(longest) == longest, "\(size)")
            guard promise.longest != nil else { continue }
            #expect(try databaseError { try length(longest + 1) }.isTooBig, "\(size)")
        }
    }

    // While an open store is encrypted, the limit is that of a file of at least 16 MB. Engines before SQLite 3.20 do
    // not enforce the limit.
    @Test(
        "A statement of 720,000 instructions runs beside a file of 8 MB, and not beside a small file from elsewhere",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_020_000),
        arguments: promises.filter { $0.name != "following" })
    func instructions(promise: Promise) throws {
        try open(promise).close()
        let maker = try fixture.open()
        // Each number takes three instructions. The statement itself may be no longer than a value.
        let numbers = String(repeating: ",1", count: 1_999)
        try maker.execute(SQL(text: "CREATE VIEW many AS SELECT 1 IN (1\(numbers)) AS x"))
        maker.close()
        let all = Array(repeating: "SELECT x FROM many", count: 120).joined(separator: " UNION ALL ")
        let statement = SQL(text: "SELECT sum(x) FROM (\(all))")
        let large = try promise.profile(8 << 20).open(fixture.path)
        #expect(try large.value(Int.self, statement) == 120)
        large.close()
        let small = try promise.profile(Connection.size(fixture.path)).open(fixture.path)
        defer { small.close() }
        if promise.longest != nil {
            #expect(try databaseError { try small.value(Int.self, statement) }.isOutOfMemory)
        } else {
            #expect(try small.value(Int.self, statement) == 120)
        }
    }

    @Test(
        "A symbolic link at the end of the path is not opened",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_031_000), arguments: promises)
    func links(promise: Promise) throws {
        try open(promise).close()
        let link = fixture.path + "-link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: fixture.path)
        #expect(try databaseError { try promise.profile(Connection.size(fixture.path)).open(link) }.isCannotOpen)
    }
}
