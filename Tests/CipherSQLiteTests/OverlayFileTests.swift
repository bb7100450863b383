internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

struct OverlayFileTests {
    struct Form: Sendable, CustomTestStringConvertible {
        var isEncrypted: Bool
        var journal: String
        var pageSize: Int
        var testDescription: String {
            "\(isEncrypted ? "encrypted" : "plaintext"), \(journal), \(pageSize) bytes a page"
        }

        static let all = [false, true].flatMap { isEncrypted in
            ["DELETE", "WAL"].flatMap { journal in
                [isEncrypted ? 1024 : 512, 4096, 65536].map {
                    Form(isEncrypted: isEncrypted, journal: journal, pageSize: $0)
                }
            }
        }
    }

    private static let legacy = """
        CREATE TABLE a (id INTEGER PRIMARY KEY, text TEXT, load BLOB); CREATE INDEX a_text ON a(text);
        CREATE TABLE b (x); INSERT INTO b VALUES ('kept');
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 800)
        INSERT INTO a SELECT i, 'text ' || i, zeroblob(i * 7 % 3000) FROM n;
        """
    /// Grows the file, overflows the cache, shrinks it, and moves pages.
    private static func changes(_ form: Form) -> String {
        // SQLCipher itself sometimes cannot read page 1 after rolling it back to a savepoint (docs/RELIABILITY.md).
        let undone =
            form.isEncrypted
            ? "UPDATE a SET load = zeroblob(length(load)) WHERE length(load) < 200" : "DELETE FROM a WHERE id < 700"
        return """
            PRAGMA cache_size = 10;
            BEGIN; UPDATE a SET load = randomblob(900) WHERE id % 3 = 0; INSERT INTO a(text) SELECT text FROM a;
            SAVEPOINT s; \(undone); ROLLBACK TO s; RELEASE s; DROP TABLE b; CREATE TABLE c AS SELECT id FROM a;
            CREATE UNIQUE INDEX c_id ON c(id); DELETE FROM a WHERE id > 300; COMMIT;
            """
    }

    private func file(_ form: Form) throws -> (folder: TemporaryFolder, path: String) {
        let folder = try TemporaryFolder()
        let path = folder.path("app.db")
        let connection = try open(path, form, .create)
        defer { connection.close() }
        // The remaining log contains some of the rows.
        let reader = try Connection(path: path, mode: .readOnly)
        _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(form.journal)"))
        try connection.executeScript(text: Self.legacy)
        if form.journal == "WAL" {
            _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
            try connection.execute("UPDATE b SET x = 'in the log'")
            for name in try folder.names {
                try FileManager.default.copyItem(atPath: folder.path(name), toPath: folder.path("kept-\(name)"))
            }
        }
        reader.close()
        guard form.journal == "WAL" else { return (folder, path) }
        connection.close()
        for name in ["app.db", "app.db-wal"] {
            try? FileManager.default.removeItem(atPath: folder.path(name))
            try FileManager.default.moveItem(atPath: folder.path("kept-\(name)"), toPath: folder.path(name))
        }
        try FileManager.default.removeItem(atPath: folder.path("kept-app.db-shm"))
        return (folder, path)
    }

    private func open(_ path: String, _ form: Form, _ mode: Connection.Mode) throws -> Connection {
        let connection = try Connection(path: path, mode: mode)
        try prepare(connection, form, isNew: mode == .create)
        return connection
    }

    private func prepare(_ connection: Connection, _ form: Form, isNew: Bool = false) throws {
        if form.isEncrypted {
            try connection.setKey(TestKeys.raw(), settings: CipherSettings(pageSize: form.pageSize))
        } else if isNew {
            try connection.execute(SQL(text: "PRAGMA page_size = \(form.pageSize)"))
        }
    }

    private func content(_ connection: Connection) throws -> [String] {
        try connection.values(
            String.self,
            """
            SELECT 'a' || id || text || length(load) FROM a UNION ALL SELECT 'c' || id FROM c
            UNION ALL SELECT name || sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY 1
            """)
    }

    @Test(
        "A rehearsal over a database shows what the changes would do to the file, and leaves every byte unchanged",
        arguments: Form.all)
    func changesNothing(form: Form) throws {
        let (folder, path) = try file(form)
        let before = try FolderDigest(folder.url)
        let reader = try open(path, form, .readOnly)
        let rehearsed = try reader.transaction(.deferred) { () -> [String]? in
            try reader.proveReadable()
            return try reader.rehearsing(limit: 64 << 20) {
                try prepare($0, form)
            } _: { rehearsal in
                #expect(
                    try rehearsal.value(String.self, "SELECT x FROM b")
                        == (form.journal == "WAL" ? "in the log" : "kept"))
                try rehearsal.executeScript(text: Self.changes(form))
                #expect(try rehearsal.value(String.self, "PRAGMA integrity_check") == "ok")
                return try content(rehearsal)
            }
        }
        reader.close()
        for name in ["app.db-wal", "app.db-shm"] where !before.names.contains(name) {
            try? FileManager.default.removeItem(atPath: folder.path(name))
        }
        #expect(try FolderDigest(folder.url) == before)
        let writer = try open(path, form, .readWrite)
        defer { writer.close() }
        try writer.executeScript(text: Self.changes(form))
        #expect(try rehearsed == content(writer))
    }

    @Test("A rehearsal over a database that would change more than its limit returns no result", arguments: Form.all)
    func limit(form: Form) throws {
        let (folder, path) = try file(form)
        defer { withExtendedLifetime(folder) {} }
        let reader = try open(path, form, .readOnly)
        defer { reader.close() }
        try reader.transaction(.deferred) {
            try reader.proveReadable()
            let result: Void? = try reader.rehearsing(limit: 100_000) {
                try prepare($0, form)
            } _: {
                try $0.executeScript(text: Self.changes(form))
            }
            #expect(result == nil)
            // An error of another kind is reported.
            #expect(throws: DatabaseError.self) {
                try reader.rehearsing(limit: 100_000) {
                    try prepare($0, form)
                } _: {
                    try $0.execute("DELETE FROM nothing")
                }
            }
        }
    }

    @Test(
        "A rehearsal over a database also counts temporary data beyond the cache, for as long as the data exists",
        arguments: Form.all.filter { $0.pageSize <= 4096 })
    func temporary(form: Form) throws {
        let (folder, path) = try file(form)
        defer { withExtendedLifetime(folder) {} }
        let reader = try open(path, form, .readOnly)
        defer { reader.close() }
        let large: SQL = """
            CREATE TEMP TABLE large AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
            SELECT i, zeroblob(1000) AS load FROM n
            """
        try reader.transaction(.deferred) {
            try reader.proveReadable()
            func rehearse(_ limit: Int, _ body: (Connection) throws -> Void) throws -> Bool {
                try reader.rehearsing(limit: limit) {
                    try prepare($0, form)
                } _: {
                    try body($0)
                } != nil
            }
            #expect(try !rehearse(4 << 20) { try $0.execute(large) })
            #expect(
                try rehearse(40 << 20) {
                    for _ in 0..<6 {
                        try $0.execute(large)
                        try $0.execute("DROP TABLE large")
                    }
                })
        }
    }

    @Test("A rehearsal over a missing database starts empty")
    func empty() throws {
        let scratch = try Connection(path: "", mode: .create)
        defer { scratch.close() }
        let count = try scratch.rehearsing(limit: 1 << 20) { _ in
        } _: { rehearsal in
            try rehearsal.executeScript("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
            return try rehearsal.value(Int.self, "SELECT count(*) FROM t")
        }
        #expect(count == 1)
    }
}
