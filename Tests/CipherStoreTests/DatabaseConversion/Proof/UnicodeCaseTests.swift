internal import CipherDatabaseConversion
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Indexes that an app built with its own versions of SQLite's `lower`, `upper` and NOCASE.
struct UnicodeCaseTests {
    private static let schemas = [
        "CREATE TABLE t(a TEXT); CREATE INDEX i ON t(lower(a))",
        "CREATE TABLE t(a TEXT); CREATE INDEX i ON t(upper(a), a)",
        "CREATE TABLE t(a TEXT COLLATE NOCASE); CREATE INDEX i ON t(a)",
    ]

    /// - Parameter withCollation: Whether NOCASE is replaced too; otherwise only the functions are, as on Android.
    private static func register(on connection: Connection, withCollation: Bool = true) throws {
        func function(_ name: String, _ change: @escaping @Sendable (String) -> String) -> SQLFunction {
            SQLFunction(name, argumentCount: 1) { arguments in
                if case .text(let text) = arguments[0] { .text(change(text)) } else { arguments[0] }
            }
        }
        try connection.register(function("lower") { String($0.map { Character($0.lowercased()) }) })
        try connection.register(function("upper") { String($0.map { Character($0.uppercased()) }) })
        guard withCollation else { return }
        try connection.register(
            Collation(name: "NOCASE") { left, right in
                let (left, right) = (
                    Array(String(decoding: left, as: UTF8.self).lowercased().unicodeScalars),
                    Array(String(decoding: right, as: UTF8.self).lowercased().unicodeScalars)
                )
                return left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
            })
    }

    /// Makes a file.
    ///
    /// - Parameter damaged: The index from which a row is missing.
    private func file(
        _ schema: String, damaged: String? = nil, withCollation: Bool = true
    ) throws -> LegacyFile {
        try LegacyFile { connection in
            try Self.register(on: connection, withCollation: withCollation)
            try connection.executeScript(
                text: schema + """
                    ; WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                    INSERT INTO t(a) SELECT substr('ÉéÜüaBcDñÑ', 1 + i % 10, 1) || 'x' || i FROM n;
                    CREATE TEMP TABLE entry AS SELECT * FROM sqlite_master WHERE name = '\(damaged ?? "")'
                    """)
            guard let damaged else { return }
            try connection.editSchema("DELETE FROM sqlite_master WHERE name = '\(damaged)'")
            try connection.execute("INSERT INTO t(a) VALUES ('Élan')")
            try connection.editSchema("INSERT INTO sqlite_master SELECT * FROM entry")
        }
    }

    @Test("An index that matches the rows in the app's version is copied as it is, with a warning", arguments: schemas)
    func carried(schema: String) async throws {
        let file = try file(schema)
        let url = URL(filePath: file.path)
        let provider = TestKeys.provider()
        let before = try await DatabaseConverter.verify(url, keyProvider: provider)
        #expect(before.isSound && before.warnings.count == 1, "\(before)")
        let report = try await DatabaseConverter.encrypt(url, keyProvider: provider)
        #expect(report.rebuiltIndexes == [] && report.warnings.besidesLeases.count == 1, "\(report)")
        let after = try await DatabaseConverter.verify(url, keyProvider: provider)
        #expect(after.isSound && after.warnings.count == 1, "\(after)")
        try expectWhole(file)
        let backup = URL(filePath: file.path + "-backup")
        _ = try await DatabaseConverter.backup(of: url, to: backup, keyProvider: provider)
        let copied = try await DatabaseConverter.backup(
            of: url, to: URL(filePath: file.path + "-second"), keyProvider: provider)
        #expect(copied.warnings.besidesLeases.count == 1 && copied.rebuiltIndexes == [], "\(copied)")
        let restored = try await DatabaseConverter.restore(url, from: backup, keyProvider: provider)
        #expect(restored.outcome == .restored && restored.rebuiltIndexes == [], "\(restored)")
        try expectWhole(file)
    }

    @Test("A recovery tells which indexes it built with SQLite's own versions", arguments: schemas)
    func recovered(schema: String) async throws {
        let file = try file(schema)
        let report = try await DatabaseConverter.recover(
            URL(filePath: file.path), to: URL(filePath: file.path + "-new"), keyProvider: TestKeys.provider())
        #expect(report.complete && report.notes.contains { $0.hasSuffix(": i") }, "\(report)")
    }

    @Test("An index that lacks a row in the app's version too is rebuilt", arguments: schemas)
    func damaged(schema: String) async throws {
        let file = try file(schema, damaged: "i")
        let url = URL(filePath: file.path)
        #expect(try await !DatabaseConverter.verify(url, keyProvider: TestKeys.provider()).isSound)
        let report = try await DatabaseConverter.encrypt(url, keyProvider: TestKeys.provider())
        #expect(report.rebuiltIndexes == ["i"], "\(report)")
        try expectWhole(file)
    }

    @Test("If an index is rebuilt that the app may have built with its own versions, the report says so")
    func rebuiltWithOwnVersions() async throws {
        let file = try LegacyFile { connection in
            // Only lower() is the app's version.
            try connection.executeScript("CREATE TABLE t(a TEXT); CREATE INDEX k ON t(upper(a))")
            try connection.register(
                SQLFunction("lower", argumentCount: 1) { arguments in
                    if case .text(let text) = arguments[0] { .text(text.lowercased()) } else { arguments[0] }
                })
            try connection.executeScript("CREATE INDEX i ON t(lower(a)); INSERT INTO t VALUES ('É'), ('ü'), ('Ñ')")
        }
        let report = try await DatabaseConverter.encrypt(URL(filePath: file.path), keyProvider: TestKeys.provider())
        #expect(report.rebuiltIndexes == ["i"], "\(report)")
        #expect(report.warnings.contains(SQLExtensions.rebuiltWithOwnCase), "\(report)")
    }

    @Test("If an index is rebuilt that contains no changed letters, the report does not mention them")
    func rebuiltWithoutCase() async throws {
        let file = try file("CREATE TABLE t(a TEXT); CREATE INDEX i ON t(a)", damaged: "i")
        let report = try await DatabaseConverter.encrypt(URL(filePath: file.path), keyProvider: TestKeys.provider())
        #expect(report.rebuiltIndexes == ["i"], "\(report)")
        #expect(!report.warnings.contains(SQLExtensions.rebuiltWithOwnCase), "\(report)")
    }

    /// Checks an encrypted file as the app would.
    private func expectWhole(_ file: LegacyFile, withCollation: Bool = true) throws {
        let health = try file.read(key: TestKeys.raw()) { connection in
            try Self.register(on: connection, withCollation: withCollation)
            return try connection.values(String.self, "PRAGMA integrity_check")
        }
        #expect(health == ["ok"])
    }

    @Test("An index of the app's functions is carried beside one of SQLite's own NOCASE")
    func onlyFunctions() async throws {
        let schema = "CREATE TABLE t(a TEXT); CREATE INDEX i ON t(lower(a)); CREATE INDEX k ON t(a COLLATE NOCASE)"
        for damaged in [nil, "k"] {
            let file = try file(schema, damaged: damaged, withCollation: false)
            let url = URL(filePath: file.path)
            let before = try await DatabaseConverter.verify(url, keyProvider: TestKeys.provider())
            #expect(before.isSound == (damaged == nil), "\(before)")
            let report = try await DatabaseConverter.encrypt(url, keyProvider: TestKeys.provider())
            #expect(report.rebuiltIndexes == [damaged].compactMap { $0 }, "\(report)")
            try expectWhole(file, withCollation: false)
        }
    }

    @Test(
        "An index of the app's functions is carried beside a table that cannot be checked",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_031_000), arguments: schemas, [nil, "i"])
    func besideUnchecked(schema: String, damaged: String?) async throws {
        let file = try file(
            "CREATE TABLE long(a, b TEXT AS (hex(hex(a)))); INSERT INTO long(a) VALUES (randomblob(100000)); " + schema,
            damaged: damaged)
        let report = try await DatabaseConverter.encrypt(URL(filePath: file.path), keyProvider: TestKeys.provider())
        #expect(report.rebuiltIndexes == [damaged].compactMap { $0 }, "\(report)")
        let rows = try file.read(key: TestKeys.raw()) { connection in
            try Self.register(on: connection)
            return try connection.values(String.self, "PRAGMA integrity_check(t)")
        }
        #expect(rows == ["ok"])
    }

    @Test("Damage to another index does not change an index that the app's version built", arguments: schemas)
    func besideDamage(schema: String) async throws {
        let file = try file(schema + "; CREATE INDEX j ON t(length(a))", damaged: "j")
        let url = URL(filePath: file.path)
        let report = try await DatabaseConverter.encrypt(url, keyProvider: TestKeys.provider())
        #expect(
            report.rebuiltIndexes == ["j"] && report.warnings.contains(SQLExtensions.unicodeCaseWarning), "\(report)")
        try expectWhole(file)
    }
}
