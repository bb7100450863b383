internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// A folder with a key and databases, and the tool to run on them.
///
/// The keys, which no run may show.
struct ToolFixture {
    static let rawKey = String(repeating: "5eC2e7", count: 10) + "ab12"
    static let otherRawKey = String(repeating: "0f", count: 32)
    static let passphrase = "Grüße-an-alle-7731"
    private static let secrets = [rawKey, otherRawKey, passphrase]

    let folder: TemporaryFolder
    /// Keys are outside the databases' folder, whose listing is compared.
    let keys: TemporaryFolder
    let key: String
    let otherKey: String

    init() throws {
        folder = try TemporaryFolder()
        keys = try TemporaryFolder()
        key = try keys.write("x'\(Self.rawKey)'\n", to: "key")
        otherKey = try keys.write("x'\(Self.otherRawKey)'\n", to: "other")
    }

    var database: String { folder.path("app.db") }

    // MARK: Running

    /// Runs the tool, which may not show a key.
    @discardableResult
    func run(_ arguments: String..., environment: [String: String] = [:]) throws -> ToolRun {
        try run(arguments, environment: environment)
    }

    @discardableResult
    func run(_ arguments: [String], environment: [String: String] = [:]) throws -> ToolRun {
        try checked(ToolRun.run(Programs.tool, arguments, environment: environment, in: folder.path("")))
    }

    /// Runs the tool through a shell, as `"$@"` after the script's setup.
    func run(shell script: String, _ arguments: [String]) throws -> ToolRun {
        try checked(ToolRun.run("/bin/sh", ["-c", script, "sh", Programs.tool] + arguments, in: folder.path("")))
    }

    func checked(_ run: ToolRun) -> ToolRun {
        for secret in Self.secrets {
            #expect(!run.output.contains(secret), "a key was shown on standard output")
            #expect(!run.errors.contains(secret), "a key was shown on standard error")
        }
        return run
    }

    /// Runs another process that holds a lock until it is finished.
    func holdingLock(_ kind: String, _ path: String) throws -> ToolProcess {
        let holder = try ToolProcess(Programs.lockHolder, [kind, path], keepsInputOpen: true)
        while try !holder.outputSoFar.contains("ready") {
            try #require(holder.isRunning, "the lock holder ended early")
        }
        return holder
    }

    // MARK: Comparing

    /// Returns the bytes of every file in the folder, by name.
    ///
    /// For a `-shm`, which readers may write, only its existence counts.
    func snapshot() throws -> [String: Data] {
        var files: [String: Data] = [:]
        for name in try folder.names {
            let url = folder.url.appending(path: name)
            let isFolder = try url.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true
            files[name] = isFolder || name.hasSuffix("-shm") ? Data() : try Data(contentsOf: url)
        }
        return files
    }

    // MARK: Databases

    static let script = """
        CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT, payload BLOB, weight REAL);
        CREATE INDEX note_body ON note(body);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO note SELECT i, 'a body of some length, number ' || i, zeroblob(i % 90), i / 8.0 FROM n;
        PRAGMA user_version = 23;
        PRAGMA application_id = 77;
        """

    /// Makes a database, plaintext or encrypted under the fixture's key.
    func make(
        _ name: String = "app.db", encrypted: Bool = false, mode: String = "DELETE",
        settings: CipherSettings = CipherSettings(), _ script: String = Self.script
    ) throws {
        try LegacyFile.write(
            folder.path(name), key: encrypted ? Self.parsed(Self.rawKey) : nil, settings: settings,
            script: "PRAGMA journal_mode = \(mode); \(script)")
    }

    static func parsed(_ hexadecimal: String) throws -> CipherKey {
        try CipherKey(text: SecretBytes("x'\(hexadecimal)'".utf8))
    }

    /// Makes a database with rows in its `-wal`, as a crashed app leaves it: nobody has it open.
    func makeWithLiveLog(encrypted: Bool = false) throws {
        try LegacyFile.write(
            database, key: encrypted ? Self.parsed(Self.rawKey) : nil, unclosed: true,
            script: "PRAGMA journal_mode = WAL; \(Self.script)")
    }

    /// Makes a database whose writer died during a transaction, so that it has a hot journal.
    func makeWithHotJournal(encrypted: Bool = false) throws {
        // Because the cache is so small, pages are written before the transaction ends.
        try LegacyFile.write(
            database, key: encrypted ? Self.parsed(Self.rawKey) : nil, unclosed: true,
            script: """
                \(Self.script)
                PRAGMA cache_size = 2; BEGIN; UPDATE note SET body = 'changed', payload = zeroblob(300)
                """)
    }

    /// Overwrites bytes of a file.
    func overwrite(_ name: String = "app.db", at offset: Int, with bytes: [UInt8]) throws {
        let handle = try FileHandle(forUpdating: folder.url.appending(path: name))
        defer { handle.closeFile() }
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: Data(bytes))
    }

    /// Truncates a file.
    func truncate(_ name: String = "app.db", to size: Int) throws {
        let handle = try FileHandle(forUpdating: folder.url.appending(path: name))
        defer { handle.closeFile() }
        try handle.truncate(atOffset: UInt64(size))
    }

    /// A configuration for `app.db` that declares the fixture's table and one more.
    func configuration(_ extra: String = "") throws -> String {
        try keys.write(
            """
            { "dbName": "app.db", "dbVersion": 26, \(extra)
              "encryption": { "enabled": true, "sinceVersion": 24 },
              "dbTables": [
                { "note": [ { "id": "INTEGER PRIMARY KEY" }, { "body": "TEXT" }, { "payload": "BLOB" },
                            { "weight": "REAL" }, { "pinned": "INTEGER NOT NULL DEFAULT 0" } ] },
                { "label": [ { "id": "INTEGER PRIMARY KEY" }, { "name": "TEXT" } ] }
              ] }
            """, to: "config.json")
    }
}
