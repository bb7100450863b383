internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Functions and tokenizers that a configuration registers.
struct StoreExtensionsTests {
    private let folder: TemporaryFolder
    private var configuration: Configuration

    init() throws {
        folder = try TemporaryFolder()
        let schema = [
            "CREATE TABLE chat(id INTEGER PRIMARY KEY, body TEXT CHECK (app_hash(body) > 0))",
            "CREATE INDEX i ON chat(app_hash(body))",
            "CREATE VIRTUAL TABLE f USING \(AppExtensions.module)(body, tokenize=words)",
            "CREATE TRIGGER filled AFTER INSERT ON chat BEGIN "
                + "INSERT INTO f(rowid, body) VALUES (new.id, new.body); END",
        ]
        configuration = Configuration(
            databaseName: "app.db", version: 2,
            schema: .steps(
                MigrationSteps(
                    baseline: .sql(schema),
                    updates: [.init(2, name: "second", .sql(["INSERT INTO chat(body) VALUES ('Don''t PANIC')"]))])))
        configuration.functions = [AppExtensions.hash]
        configuration.tokenizers = [AppExtensions.words]
    }

    private func writeLegacy(version: Int = 1) throws {
        try LegacyFile.write(folder.path("app.db")) { connection in
            try connection.register(AppExtensions.hash)
            try connection.register(AppExtensions.words)
            guard case .steps(let steps) = configuration.schema, case .sql(let schema) = steps.baseline else { return }
            for sql in schema { try connection.execute(SQL(text: sql)) }
            try connection.execute("INSERT INTO chat(body) VALUES ('old WORD')")
            try connection.execute(SQL(text: "PRAGMA user_version = \(version)"))
        }
    }

    private func open(_ configuration: Configuration) async throws -> EncryptedStore {
        try await EncryptedStore.open(configuration, directory: folder.url, keyProvider: TestKeys.provider())
    }

    private static let query: @Sendable (Connection) throws -> [Int] = { db in
        try db.values(Int.self, "SELECT rowid FROM f WHERE f MATCH 'panic'")
            + db.values(Int.self, "SELECT app_hash('a')")
    }

    /// A function of the app that differs from SQLite's function with the same name.
    private static func nonsense(_ name: String) -> SQLFunction { SQLFunction(name) { _ in .integer(0) } }

    @Test(
        "An app's function with the name of one of SQLite's does not affect the library's own queries",
        arguments: ["like", "lower", "upper", "glob", "hex", "length", "substr", "printf", "replace", "instr", "abs"])
    func shadowing(name: String) async throws {
        let schema = [
            "CREATE TABLE chat(uid TEXT, body TEXT)",
            "CREATE TABLE pair(a TEXT, b TEXT, PRIMARY KEY(a, b)) WITHOUT ROWID",
            "CREATE TABLE kept(a INTEGER PRIMARY KEY, b TEXT CHECK (b <> ''))",
            "CREATE INDEX kept_b ON kept(b)",
            "CREATE VIEW notes AS SELECT b FROM kept",
            "CREATE TRIGGER given AFTER INSERT ON chat BEGIN DELETE FROM pair WHERE a = new.body; END",
        ]
        try LegacyFile.write(
            folder.path("app.db"),
            script: schema.joined(separator: ";\n") + """
                ; INSERT INTO chat VALUES ('ana', 'old'); INSERT INTO pair VALUES ('a', 'b');
                INSERT INTO kept VALUES (7, 'seven'); PRAGMA user_version = 1;
                """)
        var configuration = Configuration(
            databaseName: "app.db", version: 2,
            schema: .steps(
                MigrationSteps(
                    baseline: .sql(schema),
                    updates: [.init(2, name: "second", .sql(["ALTER TABLE chat ADD COLUMN likes INTEGER"]))])))
        configuration.functions = [Self.nonsense(name)]
        _ = try await EncryptedStore.plan(configuration, directory: folder.url, keyProvider: TestKeys.provider())
        let store = try await open(configuration)
        let all: @Sendable (Connection) throws -> [String] = { db in
            try db.values(
                String.self, "SELECT b FROM pair UNION ALL SELECT a || b FROM kept UNION ALL SELECT body FROM chat")
        }
        #expect(try await store.read(all) == ["b", "7seven", "old"])
        try await store.vacuum()
        let backups = try TemporaryFolder()
        let target = backups.url.appending(path: "backup.db")
        try await store.backup(to: target)
        await store.close()
        let history = try await EncryptedStore.history(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        #expect(history.version == 2)
        let validation = try await EncryptedStore.validate(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        #expect(validation.isValid, "\(validation.sentences)")
        try await EncryptedStore.restore(
            configuration, directory: folder.url, from: target, keyProvider: TestKeys.provider())
        let restored = try await open(configuration)
        #expect(try await restored.read(all) == ["b", "7seven", "old"])
        await restored.close()
    }

    @Test(
        "A function that would hide one of SQLite's from the library is refused, and the file stays unchanged",
        arguments: ["coalesce", "Count", "ifnull", "MAX", "min", "strftime", "sum", "total", "typeof"])
    func reserved(name: String) async throws {
        try writeLegacy()
        let before = try FolderDigest(folder.url)
        var configuration = configuration
        configuration.functions.append(Self.nonsense(name))
        let error = try await failure(StoreError.self) { try await open(configuration) }
        #expect(error.code == .misuse && "\(error)".contains(name))
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test("Functions and tokenizers are on every connection of a store that was created, migrated or encrypted")
    func everywhere() async throws {
        for isLegacy in [false, true] {
            try? FileManager.default.removeItem(atPath: folder.path("app.db"))
            if isLegacy { try writeLegacy() }
            let plan = try await EncryptedStore.plan(
                configuration, directory: folder.url, keyProvider: TestKeys.provider())
            #expect(plan.schema.notes.allSatisfy { !$0.contains("not rehearsed") }, "\(plan.schema.notes)")
            let store = try await open(configuration)
            #expect(try await store.read(Self.query) == [isLegacy ? 2 : 1, 97])
            #expect(try await store.write(Self.query) == [isLegacy ? 2 : 1, 97])
            #expect(try await store.read { try $0.value(String.self, "PRAGMA integrity_check") } == "ok")
            await store.close()
            let validation = try await EncryptedStore.validate(
                configuration, directory: folder.url, keyProvider: TestKeys.provider())
            #expect(validation.isValid, "\(validation.sentences)")
            let history = try await EncryptedStore.history(
                configuration, directory: folder.url, keyProvider: TestKeys.provider())
            #expect(!history.items.isEmpty)
        }
    }

    @Test("A migration that needs an unregistered function or tokenizer is refused, and the error names it")
    func refused() async throws {
        try writeLegacy()
        let before = try FolderDigest(folder.url)
        for (code, name) in [(StoreError.Code.missingFunction, "app_hash"), (.missingTokenizer, "words")] {
            var lacking = configuration
            if code == .missingFunction { lacking.functions = [] } else { lacking.tokenizers = [] }
            let error = try await failure(StoreError.self) { try await open(lacking) }
            #expect(error.code == code, "\(error)")
            #expect("\(error)".contains(name) && error.advice.contains("configuration's"), "\(error)")
            #expect(try FolderDigest(folder.url) == before)
        }
    }

    @Test("A new database that needs an unregistered function or tokenizer is not created")
    func notMade() async throws {
        for (code, name) in [(StoreError.Code.missingFunction, "app_hash"), (.missingTokenizer, "words")] {
            var lacking = configuration
            if code == .missingFunction { lacking.functions = [] } else { lacking.tokenizers = [] }
            let error = try await failure(StoreError.self) { try await open(lacking) }
            #expect(error.code == code, "\(error)")
            #expect("\(error)".contains(name), "\(error)")
            #expect(try folder.names.filter { $0 != "app.db-attempt" } == [])
        }
    }

    @Test("Declared tables can use the app's functions")
    func declared() async throws {
        var configuration = Configuration.declaring(["chat": ["body": "TEXT CHECK (app_hash(body) > 0)"]])
        configuration.functions = [AppExtensions.hash]
        let store = try await open(configuration)
        try await store.write { try $0.execute("INSERT INTO chat VALUES ('a')") }
        await #expect(throws: DatabaseError.self) {
            try await store.write { try $0.execute("INSERT INTO chat VALUES ('')") }
        }
        await store.close()
    }

    @Test("A file that needs functions or tokenizers opens without them, and a statement that needs one names it")
    func openedWithout() async throws {
        try writeLegacy(version: 2)
        var lacking = configuration
        lacking.functions = []
        lacking.tokenizers = []
        lacking.schema = .none
        let store = try await open(lacking)
        #expect(try await store.read { try $0.values(String.self, "SELECT body FROM chat") } == ["old WORD"])
        let error = try await failure(DatabaseError.self) {
            try await store.write { try $0.execute("INSERT INTO chat(body) VALUES ('x')") }
        }
        #expect(error.message.contains("app_hash"), "\(error)")
        await store.close()
    }
}
