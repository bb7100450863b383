internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The means to open a store in a folder, which the suite keeps.
struct StoreFixture {
    let folder: TemporaryFolder
    var configuration = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT"]])
    var options = EncryptedStore.Options()

    init(_ folder: TemporaryFolder, name: String = "app.db", isEncrypted: Bool = true) {
        self.folder = folder
        configuration.databaseName = name
        configuration.encryption.isEnabled = isEncrypted
    }

    var path: String { folder.path(configuration.databaseName) }

    func open(_ provider: any KeyProvider = TestKeys.provider()) async throws -> EncryptedStore {
        try await EncryptedStore.open(configuration, directory: folder.url, keyProvider: provider, options: options)
    }

    /// Returns another connection to the store's file, as another process might have.
    func connection(isEncrypted: Bool, busyTimeout: Duration = .zero) throws -> Connection {
        guard isEncrypted else { return try Connection(path: path, mode: .create, busyTimeout: busyTimeout) }
        return try Connection(
            path: path, mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings(), busyTimeout: busyTimeout)
    }

    /// Adds a row to an encrypted database that no store has open, but no entry to one of its indexes.
    ///
    /// - Parameter index: The index, whose schema entries are removed meanwhile, on a connection that never knew it.
    func insert(_ row: SQL, besides index: String) throws {
        func withConnection(_ body: (Connection) throws -> Void) throws {
            let connection = try connection(isEncrypted: true)
            defer { connection.close() }
            try connection.execute("PRAGMA writable_schema = ON")
            try body(connection)
        }
        var entry: [Value] = []
        try withConnection { connection in
            try connection.forEachRow(
                "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = \(index)"
            ) { row in entry = try (0..<5).map { try row.get(at: $0) } }
            try connection.execute("DELETE FROM sqlite_master WHERE name = \(index)")
        }
        try #require(entry.count == 5)
        try withConnection { connection in
            try connection.execute(row)
            try connection.execute(
                "INSERT INTO sqlite_master VALUES (\(entry[0]), \(entry[1]), \(entry[2]), \(entry[3]), \(entry[4]))")
        }
    }

    /// Writes a plaintext database with one chat row, as an old version of the app left it.
    func writeLegacy(version: Int = 3, journalMode: String = "DELETE") throws {
        try LegacyFile.write(
            path,
            script: """
                PRAGMA journal_mode = \(journalMode);
                CREATE TABLE chat(uid TEXT, body TEXT);
                INSERT INTO chat VALUES ('ana', 'old');
                PRAGMA user_version = \(version);
                """)
    }
}

extension EncryptedStore {
    func insert(_ body: String) async throws {
        try await write { try $0.execute("INSERT INTO chat(uid, body) VALUES ('ana', \(body))") }
    }

    func bodies() async throws -> [String] {
        try await read { try $0.values(String.self, "SELECT body FROM chat ORDER BY rowid") }
    }
}

/// A gate between closures of a store, which block, and tasks, which await.
final class Gate: @unchecked Sendable {
    // Both are read and written only while `condition` is locked.
    private let condition = NSCondition()
    private var arrived = 0
    private var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []

    /// The number of arrivals.
    var count: Int {
        condition.lock()
        defer { condition.unlock() }
        return arrived
    }

    /// Counts one arrival.
    func arrive() {
        condition.lock()
        defer { condition.unlock() }
        arrived += 1
        condition.broadcast()
        for waiter in waiting where waiter.count <= arrived { waiter.continuation.resume() }
        waiting.removeAll { $0.count <= arrived }
    }

    /// Blocks the thread until there have been that many arrivals.
    func block(until count: Int = 1) {
        condition.lock()
        defer { condition.unlock() }
        while arrived < count { condition.wait() }
    }

    /// Suspends until there have been that many arrivals.
    func wait(until count: Int = 1) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            condition.lock()
            defer { condition.unlock() }
            if arrived >= count {
                continuation.resume()
            } else {
                waiting.append((count, continuation))
            }
        }
    }
}

/// Returns the error that `body` throws; if it throws none, the test fails.
func failure<Failure: Error>(
    _ type: Failure.Type, _ body: () async throws -> some Any, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> Failure {
    let error = await #expect(throws: type, sourceLocation: sourceLocation) { _ = try await body() }
    return try #require(error, sourceLocation: sourceLocation)
}

/// Returns the code of the store's error that `body` throws; if it throws none, the test fails.
func code(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> some Any
) async throws -> StoreError.Code {
    try await failure(StoreError.self, body, sourceLocation: sourceLocation).code
}

/// A process that a closure on another thread starts.
final class Started: @unchecked Sendable {
    // Written before the call that starts the process returns, and read after the call.
    var process: TestProgram.Running?
}
