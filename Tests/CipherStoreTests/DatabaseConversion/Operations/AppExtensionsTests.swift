internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The app's own functions and tokenizers, which the schema of a converted file names.
struct AppExtensionsTests {
    private let file: LegacyFile
    private let keys = TestKeys.provider()
    private let other = TestKeys.provider { try TestKeys.raw(9) }

    /// An index, a CHECK, a trigger and a full-text table that use them.
    init() throws {
        file = try LegacyFile { connection in
            try connection.register(AppExtensions.hash)
            try connection.register(AppExtensions.words)
            try connection.executeScript(
                text: """
                    CREATE TABLE chat(id INTEGER PRIMARY KEY, body TEXT CHECK (app_hash(body) > 0), h);
                    CREATE INDEX i ON chat(app_hash(body));
                    CREATE INDEX part ON chat(body) WHERE app_hash(body) > 200;
                    CREATE TRIGGER filled AFTER INSERT ON chat BEGIN
                        UPDATE chat SET h = app_hash(new.body) WHERE id = new.id;
                        INSERT INTO f(rowid, body) VALUES (new.id, new.body);
                    END;
                    CREATE VIRTUAL TABLE f USING \(AppExtensions.module)(body, tokenize=words);
                    INSERT INTO chat(body) VALUES ('Don''t PANIC'), ('a'), ('bb');
                    """)
        }
    }

    private var url: URL { URL(filePath: file.path) }

    private var options: ConversionOptions {
        var options = ConversionOptions()
        options.functions = [AppExtensions.hash]
        options.tokenizers = [AppExtensions.words]
        return options
    }

    private func open(_ key: CipherKey?) throws -> Connection {
        try Connection(url, key: key, functions: [AppExtensions.hash], tokenizers: [AppExtensions.words])
    }

    @Test(
        "A file is encrypted, rekeyed and decrypted with the app's functions, and each index is compared with its rows"
    )
    func converted() async throws {
        let original = try file.originalDump(computed: false)
        let reports = [
            try await DatabaseConverter.shadowProof(of: url, keyProvider: keys, options: options),
            try await DatabaseConverter.encrypt(url, keyProvider: keys, options: options),
            try await DatabaseConverter.changeKey(
                of: url, from: keys, to: other, options: options),
            try await DatabaseConverter.decrypt(url, keyProvider: other, options: options),
        ]
        for report in reports { #expect(report.warnings.besidesLeases == [], "\(report.outcome)") }
        #expect(reports.map(\.outcome) == [.shadow, .encrypted, .rekeyed, .decrypted])
        #expect(try file.dump(key: nil, computed: false) == original)
    }

    @Test("A file is copied without the app's functions and tokenizers, and is intact when they are used afterwards")
    func copiedWithout() async throws {
        #expect(try await DatabaseConverter.encrypt(url, keyProvider: keys).outcome == .encrypted)
        let connection = try open(TestKeys.raw())
        defer { connection.close() }
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
        #expect(try connection.values(Int.self, "SELECT rowid FROM f WHERE f MATCH 'panic'") == [1])
        #expect(try connection.values(Int.self, "SELECT id FROM chat WHERE app_hash(body) = 97") == [2])
        try connection.execute("INSERT INTO chat(body) VALUES ('last')")
        #expect(try connection.values(Int.self, "SELECT rowid FROM f WHERE f MATCH 'last'") == [4])
    }

    @Test("A damaged index on the app's function is rebuilt with it; without it, the error names the function")
    func rebuilt() async throws {
        try damageIndex()
        let before = try file.digest()
        let error = try await failure(StoreError.self) {
            try await DatabaseConverter.encrypt(url, keyProvider: keys)
        }
        #expect(error.code == .missingFunction)
        #expect(error.detail.contains("app_hash") && error.advice.contains("functions"), "\(error)")
        #expect(try file.digest() == before)
        let report = try await DatabaseConverter.encrypt(url, keyProvider: keys, options: options)
        #expect(report.warnings.contains { $0.contains("rebuilt from the rows") }, "\(report.warnings)")
        let connection = try open(TestKeys.raw())
        defer { connection.close() }
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    /// Removes a row's entry from an index on a column.
    private func damageIndex() throws {
        try LegacyFile.write(file.path) { connection in
            try connection.register(AppExtensions.hash)
            try connection.execute("CREATE INDEX damaged ON chat(h, id)")
            try connection.editSchema(
                """
                INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql)
                SELECT 'table', 'entries', 'entries', rootpage,
                    'CREATE TABLE entries(h, id, r, PRIMARY KEY(h, id, r)) WITHOUT ROWID'
                FROM sqlite_master WHERE name = 'damaged'
                """)
            try connection.execute("DELETE FROM entries WHERE r = 2")
            try connection.editSchema("DELETE FROM sqlite_master WHERE name = 'entries'")
        }
    }

    @Test("A function that the schema may not call is treated as missing, and the rows are copied")
    func notInnocuous() async throws {
        var options = options
        options.functions = [
            SQLFunction("app_hash", argumentCount: 1, isInnocuous: false, body: AppExtensions.hash.body)
        ]
        #expect(
            try await DatabaseConverter.encrypt(url, keyProvider: keys, options: options).outcome == .encrypted)
        #expect(try open(TestKeys.raw()).value(Int.self, "SELECT count(*) FROM chat") == 3)
    }

    @Test("A verification with the app's own functions checks the contents of each index")
    func verified() async throws {
        let without = try await DatabaseConverter.verify(url, keyProvider: keys)
        #expect(without.isSound)
        // Since SQLite 3.44, the check also opens the full-text table, which needs the app's tokenizer.
        let unchecked = Engine.current.sqliteVersionNumber >= 3_044_000 ? 2 : 1
        #expect(without.warnings.besidesLeases.count == unchecked, "\(without)")
        let with = try await DatabaseConverter.verify(url, keyProvider: keys, options: options)
        #expect(with.isSound, "\(with.complaints)")
        #expect(with.warnings.besidesLeases == [])
        let other = SQLFunction("app_hash", argumentCount: 1) { _ in .integer(7) }
        var wrong = options
        wrong.functions = [other]
        #expect(try await !DatabaseConverter.verify(url, keyProvider: keys, options: wrong).isSound)
    }
}
