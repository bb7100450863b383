import CipherPlatform
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation

/// A store that is encrypted while it executes commands from standard input, any number at a time.
///
/// A line has a number and a command. The answer is a line with the same number, and `ok` with a result or `error`.
/// Rows are identified by their number and version, which determine their contents.
enum ServedStore {
    static func run(_ path: String) async throws {
        let file = URL(filePath: path)
        var configuration = Configuration(databaseName: file.lastPathComponent, version: 1)
        configuration.encryption.when = .whileOpen
        var options = EncryptedStore.Options()
        options.busyTimeout = .seconds(2)
        let store = try await EncryptedStore.open(
            configuration, directory: file.deletingLastPathComponent(), keyProvider: TestKeys.provider(),
            options: options)
        try await store.write { try $0.executeScript(text: Self.schema) }
        tell("ready")
        let lines = AsyncStream<String> { continuation in
            Thread.detachNewThread {
                while let line = readLine(), line != "quit" { continuation.yield(line) }
                continuation.finish()
            }
        }
        await withTaskGroup { group in
            for await line in lines {
                group.addTask {
                    let words = line.split(separator: " ").map(String.init)
                    let answer: String
                    do {
                        answer = "ok " + (try await perform(Array(words.dropFirst()), store))
                    } catch {
                        answer = "error " + "\(error)".replacing("\n", with: " ")
                    }
                    tell("\(words.first ?? "") \(answer)")
                }
            }
        }
        await store.close()
    }

    private static let schema = """
        CREATE TABLE IF NOT EXISTS row(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, body BLOB);
        CREATE INDEX IF NOT EXISTS row_by_version ON row(version, body);
        CREATE TABLE IF NOT EXISTS keyed(name TEXT PRIMARY KEY, version INTEGER) WITHOUT ROWID;
        """

    private static func body(_ id: Int, _ version: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(truncatingIfNeeded: id &+ version), count: (id &* 7_919 &+ version &* 613) % 9_000)
    }

    private static func perform(_ words: [String], _ store: EncryptedStore) async throws -> String {
        let numbers = words.dropFirst().compactMap { Int($0) }
        switch (words.first ?? "", numbers.count) {
        // FIRST COUNT VERSION: consecutive rows, in one transaction.
        case ("put", 3):
            try await store.write { db in
                for id in numbers[0]..<numbers[0] + numbers[1] {
                    let body = body(id, numbers[2])
                    try db.execute("INSERT OR REPLACE INTO row VALUES (\(id), \(numbers[2]), \(body))")
                    try db.execute("INSERT OR REPLACE INTO keyed VALUES (\("row \(id)"), \(numbers[2]))")
                }
            }
            return ""
        case ("drop", 2):
            try await store.write { db in
                for id in numbers[0]..<numbers[0] + numbers[1] {
                    try db.execute("DELETE FROM row WHERE id = \(id)")
                    try db.execute("DELETE FROM keyed WHERE name = \("row \(id)")")
                }
            }
            return ""
        case ("version", 1):
            let version = try await store.read {
                try $0.value(Int.self, "SELECT version FROM row WHERE id = \(numbers[0])")
            }
            return version.map(String.init) ?? "none"
        case ("all", 0): return try await store.read { try all($0) }
        case ("old", 0): return try await store.read { try old($0) }
        default: return try await control(words, store)
        }
    }

    private static func control(_ words: [String], _ store: EncryptedStore) async throws -> String {
        switch words.first {
        case "pause": store.conversion?.isPaused = true
        case "continue": store.conversion?.isPaused = false
        case "hurry": store.conversion?.budget = StoreConversion.Budget()
        case "dawdle": store.conversion?.budget = StoreConversion.Budget(share: 0.2, bytesPerSecond: 3_000_000)
        case "sleep":
            await store.suspend()
            store.resume()
        case "checkpoint": _ = try await store.checkpoint()
        case "vacuum": try await store.writeWithoutTransaction { try $0.execute("VACUUM") }
        // Changes the schema, and restores it.
        case "alter":
            try await store.write {
                try $0.executeScript(
                    text: "CREATE TABLE IF NOT EXISTS more(a); INSERT INTO more SELECT body FROM row LIMIT 9")
            }
        case "restore": try await store.write { try $0.execute("DROP TABLE IF EXISTS more") }
        case "finish":
            store.conversion?.isPaused = false
            store.conversion?.budget = StoreConversion.Budget()
            return try await store.conversion?.value.outcome.rawValue ?? "encrypted"
        default: throw Failure(text: "unknown command \(words.joined(separator: " "))", status: 64)
        }
        return ""
    }

    /// Returns all rows as numbers and versions, if their contents are intact.
    private static func all(_ connection: Connection) throws -> String {
        guard try connection.value(String.self, "PRAGMA integrity_check") == "ok" else {
            throw Failure(text: "the database is damaged", status: 1)
        }
        var rows: [String] = []
        try connection.forEachRow("SELECT id, version, body FROM row ORDER BY id") { row in
            let (id, version) = (try row.get(Int.self, at: 0), try row.get(Int.self, at: 1))
            guard try row.get([UInt8].self, at: 2) == body(id, version) else {
                throw Failure(text: "row \(id) does not match its version \(version)", status: 1)
            }
            rows.append("\(id)=\(version)")
        }
        let differing = try connection.value(
            Int.self,
            """
            SELECT (SELECT count(*) FROM row) <> (SELECT count(*) FROM keyed)
                + (SELECT count(*) FROM row JOIN keyed ON name = 'row ' || id WHERE keyed.version <> row.version)
            """)
        guard differing == 0 else { throw Failure(text: "the two tables differ", status: 1) }
        return rows.joined(separator: ",")
    }

    /// Returns the number and the bytes of the rows that nobody writes.
    private static func old(_ connection: Connection) throws -> String {
        try connection.value(String.self, "SELECT count(*) || ' ' || total(length(body)) FROM old") ?? ""
    }

    private static let output = NSLock()

    /// Writes the whole line without a buffer.
    private static func tell(_ line: String) {
        output.withLock { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
    }
}
