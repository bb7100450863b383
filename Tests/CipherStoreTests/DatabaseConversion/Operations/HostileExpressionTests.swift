internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// Files whose schema computes what would take hours or gigabytes.
struct HostileExpressionTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let schema: String
        /// The code with which the upgrade ends; `nil` if it succeeds.
        let code: StoreError.Code?
    }

    private static let search = "instr(hex(zeroblob(7000000)), hex(zeroblob(3500000)) || ''1'')"
    private static let wideFormat = "printf(''%.*g'', 2147483647, a)"

    private static func cases(of call: String, _ name: String) -> [Case] {
        [
            Case(
                testDescription: "\(name) in a CHECK", schema: "CREATE TABLE t(a, b CHECK (\(call) IS NOT 3))",
                code: nil),
            Case(testDescription: "\(name) in an index", schema: "CREATE INDEX i ON t(\(call))", code: .corrupt),
            Case(
                testDescription: "\(name) in a partial index", schema: "CREATE INDEX i ON t(a) WHERE \(call) > 3",
                code: .corrupt),
        ]
    }

    static let cases =
        cases(of: search, "a long search") + cases(of: wideFormat, "a wide format")
        + (Engine.current.sqliteVersionNumber < 3_044_000 ? [] : joined)

    private static let joined: [Case] = {
        let values = Array(repeating: "a", count: 120).joined(separator: ", ")
        return cases(of: "concat_ws(hex(zeroblob(9000000)), \(values))", "a long separator")
    }()

    private static func file(_ test: Case) throws -> LegacyFile {
        try LegacyFile { connection in
            try connection.executeScript(
                "CREATE TABLE t(a, b); CREATE INDEX i ON t(a); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')")
            let name = test.schema.hasPrefix("CREATE TABLE") ? "t" : "i"
            try connection.editSchema("UPDATE sqlite_master SET sql = '\(test.schema)' WHERE name = '\(name)'")
        }
    }

    @Test(
        "A schema that computes for hours delays no upgrade, and is refused where its results are needed",
        arguments: cases)
    func upgrade(test: Case) throws {
        let file = try Self.file(test)
        let before = try file.digest()
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider())
        let error = try storeError { try upgrade.run() }
        #expect(error?.code == test.code, "\(String(describing: error))")
        if let error {
            #expect(error.detail.contains("the index i cannot be computed"), "\(error.detail)")
            #expect(try file.digest() == before)
        } else {
            #expect(try !file.startsAsPlaintext)
        }
    }

    @Test("A check of a file ends although the schema computes for hours", arguments: cases)
    func verification(test: Case) throws {
        let file = try Self.file(test)
        let before = try file.digest()
        _ = try Verification.run(
            at: DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()])
        #expect(try file.digest() == before)
    }

    @Test(
        "Generated columns that each use the one before twice do not exhaust memory",
        .enabled(if: Engine.current.hasGeneratedColumns))
    func doubling() throws {
        let file = try LegacyFile { connection in
            let columns = (1...40).map { "c\($0) AS (c\($0 - 1) || c\($0 - 1))" }.joined(separator: ", ")
            try connection.executeScript("CREATE TABLE t(c0 TEXT); INSERT INTO t VALUES ('x')")
            try connection.editSchema("UPDATE sqlite_master SET sql = 'CREATE TABLE t(c0 TEXT, \(columns))'")
        }
        let before = try file.digest()
        _ = try Verification.run(
            at: DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()])
        #expect(try file.digest() == before)
    }

    static let ordinary =
        [
            "CREATE INDEX i ON t(instr(a, 'b'), replace(a, 'a', 'bb'))", "CREATE INDEX i ON t(printf('%05d', b))",
            "CREATE INDEX i ON t(trim(a, 'x')) WHERE a LIKE '%a%' AND a GLOB '*a*'",
        ]
        // Older engines do not accept date functions in an index.
        + (Engine.current.sqliteVersionNumber < 3_020_000
            ? [] : ["CREATE INDEX i ON t(strftime('%Y', b, 'unixepoch'))"])
        + (Engine.current.sqliteVersionNumber < 3_044_000
            ? []
            : [
                "CREATE INDEX i ON t(concat_ws('-', typeof(a), b), json_extract(json_patch('{\"a\":1}', json_object('b', b)), '$.b'))",
                "CREATE TABLE u(a, b AS (replace(a, 'a', 'b')) STORED, c AS (concat(a, b)) CHECK (a LIKE '%a%'), UNIQUE(c))",
            ])

    @Test(
        "An index on ordinary expressions is encrypted and decrypted with the same entries", arguments: ordinary,
        ["UTF-8", "UTF-16le"])
    func ordinaryExpressions(schema: String, encoding: String) throws {
        let file = try LegacyFile { connection in
            try connection.execute(SQL(text: "PRAGMA encoding = '\(encoding)'"))
            try connection.execute("CREATE TABLE t(a, b)")
            try connection.executeScript(text: schema)
            try connection.executeScript(
                text: "INSERT INTO t VALUES ('xaébx', 1), ('ab', 2), ('', 3), (NULL, NULL), (x'6100', 1e300), (7, 'a')")
            if schema.hasPrefix("CREATE TABLE") { try connection.execute("INSERT INTO u(a) VALUES ('xax'), ('éa')") }
        }
        let before = try file.originalDump()
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.warnings.besidesLeases == [])
        #expect(try file.dump(key: TestKeys.raw()) == before)
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA integrity_check") } == "ok")
        _ = try Decryption(
            path: file.path, provider: TestKeys.provider(), formats: [CipherSettings()], options: ConversionOptions()
        ).run()
        #expect(try file.dump(key: nil) == before)
    }
}
