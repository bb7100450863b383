internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// SQLite's functions on a connection that does not trust the file's schema.
struct BoundedFunctionsTests {
    private let fixture: EngineFixture

    init() throws { fixture = try EngineFixture() }

    /// A connection on which the functions are bounded, to a database with one small table.
    private func bounded() throws -> Connection {
        let maker = try fixture.open()
        try maker.executeScript("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        maker.close()
        return try ConnectionProfile.inspecting(Connection.size(fixture.path)).open(fixture.path)
    }

    private static let expressions = [
        "instr(a, b)", "instr(c, a)", "replace(a, b, c)", "replace(c, 'a', b)", "trim(a, b)", "ltrim(a, c)",
        "rtrim(c, b)", "a LIKE b", "b LIKE '%' || a || '%'", "a LIKE b ESCAPE 'x'", "like(a, b, c)", "a GLOB b",
        "c GLOB '*' || a || '*'", "printf(a, b, c)", "printf('%s|%d|%5.2f|%q|%*d', a, b, c, a, 5, b)",
        "printf('%.3s|%-9s|%x|%,d', a, b, c, c)", "printf(a)",
    ]

    /// In a UTF-16 database, SQLite's own function reads beyond the text of a blob.
    private static func joining(_ call: String) -> String {
        "CASE WHEN 'blob' IN (typeof(a), typeof(b), typeof(c)) THEN 0 ELSE \(call) END"
    }

    private static let newExpressions = [
        joining("concat(a, b, c)"), joining("concat_ws(a, b, c)"), joining("concat_ws('-', a, b, c)"),
        joining("concat_ws(a, NULL, c)"),
        "format(a, b, c)", "unhex(a, b)", "unhex(hex(a) || '-' || hex(b), '-')", "json_patch(a, b)",
        "json_patch('{\"k\":1}', json_object('k', a, 'm', b))", "json_array(json_patch('{\"k\":1}', '{\"m\":[2]}'))",
        "json_array(json_patch('[1', '{}'), 1)", "hex(jsonb_patch('{\"k\":1}', json_array(b)))",
        "json_pretty(json_array(a, b, json_object('k', c)))", "json_pretty(json_array(a, b), c)", "json_pretty(a)",
    ]

    /// Values of every storage class, among them text that is not valid and text with a NUL character.
    private static func value(_ random: inout SeededRandom) -> String {
        let pieces = [
            "a", "ab", "A", "%", "_", "*", "[a-", "]", "x", "é", "\u{1f600}", "''", "%s", "%d", "{", "1", "-", " ",
        ]
        switch random.below(10) {
        case 0: return "NULL"
        case 1: return "\(random.below(1_000) - 500)"
        case 2: return random.pick(["1.5", "-0.0", "1e300", "9e999", "9223372036854775807", "0.1"])
        case 3: return random.pick(["x''", "x'00'", "x'6162'", "x'ff'", "zeroblob(3)"])
        case 4: return "CAST(x'\(random.pick(["ff61", "6100", "c3", "e282", "f09f98", "00", "edA080"]))' AS TEXT)"
        case 5: return random.pick(["'{\"k\":[1,{}]}'", "'[1,2]'", "'{\"m\":null}'"])
        default: return "'\((0..<random.below(8)).map { _ in random.pick(pieces) }.joined())'"
        }
    }

    @Test(
        "A bounded function has the same results and errors as SQLite's own",
        arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
    func sameResults(encoding: String) throws {
        let plain = try fixture.open()
        try plain.execute(SQL(text: "PRAGMA encoding = '\(encoding)'"))
        try plain.execute("CREATE TABLE t(a, b, c)")
        var random = SeededRandom(seed: 20)
        for _ in 0..<400 {
            let values = (0..<3).map { _ in Self.value(&random) }
            try plain.execute(SQL(text: "INSERT INTO t VALUES (\(values.joined(separator: ", ")))"))
        }
        let bounded = try ConnectionProfile.inspecting(Connection.size(fixture.path)).open(fixture.path)
        func result(_ expression: String, _ row: Int, _ connection: Connection) throws -> String {
            do {
                let value = "typeof(\(expression)) || ':' || quote(CAST(\(expression) AS BLOB))"
                return try connection.value(
                    String.self, SQL(text: "SELECT \(value) FROM t WHERE rowid = \(row)")) ?? "none"
            } catch let error as DatabaseError {
                return "\(error.extendedCode): \(error.message)"
            }
        }
        let isNew = Engine.current.sqliteVersionNumber >= 3_046_000
        for expression in Self.expressions + (isNew ? Self.newExpressions : []) {
            for row in 1...400 {
                let expected = try result(expression, row, plain)
                #expect(try result(expression, row, bounded) == expected, "\(expression), row \(row)")
            }
        }
    }

    @Test(
        "A call that would run for long is refused with the function's name",
        arguments: [
            "instr(hex(zeroblob(1900000)), hex(zeroblob(900000)) || '1')",
            "replace(hex(zeroblob(1900000)), hex(zeroblob(900000)) || '1', '')",
            "trim(hex(zeroblob(1900000)), replace(hex(zeroblob(300)), '0', 'a') || '0')",
            "hex(zeroblob(1900000)) LIKE '%' || substr(hex(zeroblob(20000)), 1, 40000) || '1'",
            "hex(zeroblob(1900000)) GLOB '*' || substr(hex(zeroblob(20000)), 1, 40000) || '1'",
            "ltrim(hex(zeroblob(1900000)), replace(hex(zeroblob(300)), '0', 'a') || '0')",
            "rtrim(hex(zeroblob(1900000)), replace(hex(zeroblob(300)), '0', 'a') || '0')",
        ])
    func refused(call: String) throws {
        let connection = try bounded()
        try connection.allowLongResults()
        let error = try databaseError { try connection.value(Value.self, SQL(text: "SELECT \(call)")) }
        #expect(error.code == DatabaseError.generic)
        #expect(error.message.contains("() was refused"), "\(error.message)")
    }

    @Test(
        "A call of a newer function that would run for long is refused",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_045_000),
        arguments: [
            "unhex(replace(hex(zeroblob(1900000)), '0', '-'), replace(hex(zeroblob(300)), '0', 'a') || '-')",
            "json_patch('{' || replace(hex(zeroblob(20000)), '0', '\"a\":0,') || '\"b\":1}', "
                + "'{' || replace(hex(zeroblob(20000)), '0', '\"c\":0,') || '\"d\":1}')",
            "jsonb_patch('{' || replace(hex(zeroblob(20000)), '0', '\"a\":0,') || '\"b\":1}', "
                + "'{' || replace(hex(zeroblob(20000)), '0', '\"c\":0,') || '\"d\":1}')",
        ])
    func newerRefused(call: String) throws { try refused(call: call) }

    @Test(
        "A call that damages memory in an old engine is refused",
        arguments: [
            "printf('%.2147483647G', 0)", "printf('%.*g', 2147483647, 0.01)", "printf('%*d', -2147483648, 1)",
            "printf('%2147483648d', 1)", "printf('%*d', '2147483647', 1)", "printf('%.*f', 2147483647.0, 1)",
        ])
    func formats(call: String) throws {
        let connection = try bounded()
        let error = try databaseError { try connection.value(Value.self, SQL(text: "SELECT \(call)")) }
        #expect(error.message.contains("printf() was refused"), "\(error.message)")
    }

    @Test(
        "A function that reads beyond its argument is refused",
        .enabled(if: Engine.current.sqliteVersionNumber < 3_028_000))
    func nodes() throws {
        let connection = try bounded()
        for call in ["rtreenode(2, x'0000ffff000000')", "rtreedepth(x'00')"] {
            let error = try databaseError { try connection.value(Value.self, SQL(text: "SELECT \(call)")) }
            #expect(error.message.contains("() was refused"), "\(error.message)")
        }
    }

    @Test(
        "Values that are too long together are refused before they are joined",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_044_000),
        arguments: [
            "concat_ws(hex(zeroblob(2000000)), \(Array(repeating: "'a'", count: 120).joined(separator: ", ")))",
            "concat_ws(hex(zeroblob(2000000)), NULL, NULL, NULL, NULL, NULL, NULL)",
            "concat(\(Array(repeating: "hex(zeroblob(1900000))", count: 120).joined(separator: ", ")))",
            "json_pretty(replace(hex(zeroblob(400)), '0', '[') || replace(hex(zeroblob(400)), '0', ']'), hex(zeroblob(30000)))",
        ])
    func joined(call: String) throws {
        let connection = try bounded()
        try connection.allowLongResults()
        #expect(try databaseError { try connection.value(Value.self, SQL(text: "SELECT \(call)")) }.isTooBig)
    }

    @Test("A value that is longer than the file can hold is refused")
    func lengths() throws {
        let connection = try bounded()
        #expect(try connection.value(Int.self, "SELECT length(zeroblob(60000))") == 60_000)
        #expect(try databaseError { try connection.value(Int.self, "SELECT length(zeroblob(200000))") }.isTooBig)
    }

    @Test(
        "A caller's own query may make values of eight times the file's size, or of 4 MB if that is more",
        arguments: [0, 1 << 20])
    func ownQueries(content: Int) throws {
        let maker = try fixture.open()
        try maker.executeScript(text: "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(\(content)))")
        maker.close()
        let size = try Connection.size(fixture.path)
        let connection = try ConnectionProfile.inspecting(size).open(fixture.path)
        try connection.allowLongResults()
        func length(_ count: Int64) throws -> Int64? {
            try connection.value(Int64.self, "SELECT length(zeroblob(\(count)))")
        }
        let longest = content == 0 ? 4_194_304 : 8 * size
        #expect(try length(longest) == longest)
        #expect(try databaseError { try length(longest + 1) }.isTooBig)
    }

    @Test("A statement that calls a function is ended by the progress handler, however few steps it takes")
    func cancellation() throws {
        let connection = try bounded()
        try connection.allowLongResults()
        connection.setProgressHandler(every: 100_000) { false }
        #expect(try connection.value(Int.self, "SELECT instr('ab', 'b')") == 2)
        let error = try databaseError {
            try connection.value(Int.self, "SELECT instr(hex(zeroblob(30000)), hex(zeroblob(20000)) || '1')")
        }
        #expect(error.isInterrupted)
    }

    @Test("A statement is ended after its processor time, and a statement without expressions is not")
    func time() throws {
        let connection = try bounded()
        let endless: SQL = "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT count(1) FROM c"
        let error = try databaseError {
            try connection.withinSteps(.max / 2, seconds: 0.01) { try connection.value(Int.self, endless) }
        }
        #expect(error.isBeyondTime)
        #expect(!error.isCorrupt)
        #expect(
            try databaseError { try connection.withinSteps(100_000) { try connection.value(Int.self, endless) } }
                .isBeyondSteps)
        #expect(try connection.computingBySchema { try connection.value(Int.self, "SELECT count(*) FROM t") } == 1)
    }

    @Test("What a small file's schema computes is ended after its processor time, though it takes few steps")
    func timeForSchema() throws {
        let connection = try bounded()
        try connection.allowLongResults()
        let endless: SQL = """
            WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT sum(length(hex(zeroblob(100000 + x)))) FROM c
            """
        let error = try databaseError {
            try connection.computingBySchema { try connection.value(Int.self, endless) }
        }
        #expect(error.isBeyondTime)
    }

    @Test("An outer limit also applies while an inner one is in effect")
    func nesting() throws {
        let connection = try bounded()
        let endless: SQL = "WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT count(1) FROM c"
        var calls = 0
        connection.setProgressHandler(every: 5_000) {
            calls += 1
            return calls < 3
        }
        let error = try databaseError {
            try connection.withinSteps(.max / 2) { try connection.value(Int.self, endless) }
        }
        #expect(error.isInterrupted)
        #expect(calls == 3)
    }

    @Test("An app's function takes the place of a bounded one with the same name")
    func replaced() throws {
        try bounded().close()
        let own = SQLFunction("instr", argumentCount: 2) { _ in .integer(42) }
        let connection = try ConnectionProfile.inspecting(Connection.size(fixture.path))
            .with(extensions: SQLExtensions(functions: [own])).open(fixture.path)
        #expect(try connection.value(Int.self, "SELECT instr('ab', 'b')") == 42)
    }

    @Test("A function that the engine does not have is not added")
    func absent() throws {
        let connection = try bounded()
        let plain = try fixture.open()
        for name in [
            "concat(1, 2)", "concat_ws(1, 2)", "unhex('61', '')", "json_patch('{}', '{}')", "rtreenode(2, x'')",
        ] {
            let call = SQL(text: "SELECT \(name)")
            let isThere = (try? Statement(call, on: plain)) != nil
            #expect(((try? Statement(call, on: connection)) != nil) == isThere, "\(name)")
        }
    }
}
