internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Commits after the rollback of a statement or a savepoint, in a transaction with more changes than the page cache
/// holds.
///
/// A copy of the file and its log, taken while the connection is open, is the state after a crash.
@Suite(.timeLimit(.minutes(20)))
struct SpilledPagesTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder(inMemory: true)
    }

    /// The ways to undo changes in the middle of a transaction.
    enum Undoing: String, CaseIterable {
        case statement, savepoint
    }

    private struct Undo: Error {}

    /// More pages than the cache holds, and an insertion of them that fails at its last row.
    private static let tables = """
        CREATE TABLE source(id INTEGER PRIMARY KEY, a, b);
        CREATE TABLE target(id INTEGER PRIMARY KEY, a, b UNIQUE);
        CREATE TABLE acknowledged(id INTEGER PRIMARY KEY);
        WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 30000)
            INSERT INTO source SELECT n, zeroblob(200), hex(randomblob(16)) FROM c;
        INSERT INTO source VALUES (30001, 1, (SELECT b FROM source WHERE id = 5));
        """

    private static func change(_ db: Connection, undoing: Undoing) throws {
        try db.execute("INSERT INTO acknowledged VALUES (1)")
        switch undoing {
        case .statement:
            #expect(throws: DatabaseError.self) { try db.execute("INSERT INTO target SELECT * FROM source") }
        case .savepoint:
            #expect(throws: Undo.self) {
                try db.savepoint {
                    try db.execute("INSERT INTO target SELECT * FROM source WHERE id < 30001")
                    try db.execute("UPDATE target SET b = hex(randomblob(16))")
                    throw Undo()
                }
            }
        }
        try db.execute("INSERT INTO acknowledged VALUES (2)")
    }

    /// Opens the state after a crash, and returns the acknowledged rows.
    private func acknowledged(_ fixture: StoreFixture) throws -> [Int] {
        for ending in ["", "-wal"] {
            // Another process copies the file, so that the store keeps its locks.
            let copying = try ChildProcess("/bin/cp", [fixture.path + ending, folder.path("crashed.db") + ending])
            try #require(copying.wait().status == 0)
        }
        let crashed = try Connection(
            path: folder.path("crashed.db"), mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        defer { crashed.close() }
        return try crashed.values(Int.self, "SELECT id FROM acknowledged ORDER BY id")
    }

    @Test("All commits of a store survive a crash", arguments: Undoing.allCases)
    func store(undoing: Undoing) async throws {
        let fixture = StoreFixture(folder)
        let store = try await fixture.open()
        try await store.write { try $0.executeScript(text: Self.tables) }
        try await store.checkpoint()
        try await store.write { try Self.change($0, undoing: undoing) }
        for number in 3...9 {
            try await store.write { try $0.execute("INSERT INTO acknowledged VALUES (\(number))") }
        }
        #expect(try acknowledged(fixture) == Array(1...9))
        await store.close()
    }

    // If the engine is fixed, this fails, and stores may write pages before a commit.
    @Test("SQLite loses commits in a crash if it writes changed pages before the commit", arguments: Undoing.allCases)
    func engine(undoing: Undoing) async throws {
        let fixture = StoreFixture(folder)
        try await fixture.open().close()
        let connection = try fixture.connection(isEncrypted: true)
        defer { connection.close() }
        try connection.stopAutomaticCheckpoints()
        try connection.executeScript(text: Self.tables)
        try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        try connection.transaction { try Self.change(connection, undoing: undoing) }
        for number in 3...9 { try connection.execute("INSERT INTO acknowledged VALUES (\(number))") }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM acknowledged") == 9)
        #expect(try acknowledged(fixture).count < 9)
    }

    @Test("A closure cannot make a store write pages before the commit")
    func setting() async throws {
        let store = try await StoreFixture(folder).open()
        for setting: SQL in ["PRAGMA cache_spill = ON", "PRAGMA cache_spill = 100"] {
            await #expect(throws: DatabaseError.self) { try await store.write { try $0.execute(setting) } }
            await #expect(throws: DatabaseError.self) {
                try await store.writeWithoutTransaction { try $0.execute(setting) }
            }
        }
        #expect(try await store.write { try $0.value(Int.self, "PRAGMA cache_spill") } == 0)
        await store.close()
    }
}
