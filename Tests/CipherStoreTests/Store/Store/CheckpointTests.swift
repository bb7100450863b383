internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Checkpoints while other connections write: SQLite's WAL-reset bug, and the store's guard against it.
@Suite(.timeLimit(.minutes(20)))
struct CheckpointTests {
    private static let subject = TestProgram.built("CipherCrashSubject")

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder(inMemory: true)
    }

    // MARK: The WAL-reset bug

    private struct Outcome: Equatable {
        /// The number of checkpoints that had read the log's header when the other connection wrote.
        var interleaved: Int
        /// How often the other connection was refused as busy.
        var refused: Int
        /// The number of acknowledged rows that are not in the file.
        var lost: Int
    }

    private func outcome(_ arguments: String...) throws -> Outcome {
        let ending = try Self.subject.run(["checkpoint", folder.path("")] + arguments)
        let words = ending.output.split(separator: " ")
        try #require(ending.status == 0 && words.count == 6, "\(ending.output) \(ending.errors)")
        return Outcome(
            interleaved: try #require(Int(words[1])), refused: try #require(Int(words[3])),
            lost: try #require(Int(words[5])))
    }

    // If the engine is fixed, this fails, and the guard can be removed.
    @Test(
        "SQLite's own checkpoint loses rows if another connection restarts the log meanwhile",
        .enabled(if: subject.isThere), arguments: ["connection", "connectionTruncating"], ["here", "elsewhere"])
    func unguarded(way: String, place: String) throws {
        let outcome = try outcome(way, "1", place)
        #expect(outcome.interleaved == 1)
        #expect(outcome.lost > 0)
    }

    @Test(
        "A store's checkpoint loses no row; another connection is refused as busy, and can continue afterwards",
        .enabled(if: subject.isThere), arguments: [(50, "here"), (5, "elsewhere")])
    func guarded(runs: Int, place: String) throws {
        // The other connection is refused before the checkpoint has its lock, and when the checkpoint has read the
        // header.
        #expect(try outcome("store", "\(runs)", place) == Outcome(interleaved: runs, refused: 2 * runs, lost: 0))
    }

    @Test(
        "A store's TRUNCATE checkpoint loses no row, even if another connection has the write lock",
        .enabled(if: subject.isThere), arguments: [(50, "here"), (5, "elsewhere")])
    func guardedTruncate(runs: Int, place: String) throws {
        // The other connection is refused twice while the store has the write lock, and not refused while it has the
        // lock itself.
        #expect(
            try outcome("storeTruncating", "\(runs)", place)
                == Outcome(interleaved: 2 * runs, refused: 2 * runs, lost: 0))
    }

    // MARK: What a store does

    /// Returns the size of the database file, or of its log.
    private func size(_ ending: String = "") throws -> Int64? { try FileSystem.size(folder.path("app.db" + ending)) }

    @Test("A commit that brings the log to a thousand frames is followed by a checkpoint, and a shorter log is not")
    func automatic() async throws {
        let fixture = StoreFixture(folder)
        let store = try await fixture.open()
        try await store.checkpoint()
        for (bytes, isCheckpointed) in [(200_000, false), (5_000_000, true)] {
            let before = try #require(try size())
            try await store.write { try $0.execute("INSERT INTO chat(body) VALUES (zeroblob(\(bytes)))") }
            #expect((try #require(try size()) > before) == isCheckpointed)
        }
        await store.close()
    }

    @Test("A checkpoint blocked by a reader does not fail the write, and the next commit runs it")
    func heldOff() async throws {
        let fixture = StoreFixture(folder)
        let store = try await fixture.open()
        try await store.checkpoint()
        let other = try fixture.connection(isEncrypted: true)
        // A reader of the log, which prevents later frames from being copied into the file.
        try await store.insert("first")
        try other.execute("BEGIN")
        _ = try other.value(Int.self, "SELECT count(*) FROM chat")
        try await store.write { try $0.execute("INSERT INTO chat(body) VALUES (zeroblob(5000000))") }
        #expect(try await store.checkpoint() == false)
        try other.execute("ROLLBACK")
        let before = try #require(try size())
        try await store.insert("next")
        #expect(try #require(try size()) > before)
        other.close()
        await store.close()
    }

    @Test("A requested checkpoint leaves an empty log, with and without encryption", arguments: [true, false])
    func truncate(isEncrypted: Bool) async throws {
        let fixture = StoreFixture(folder, isEncrypted: isEncrypted)
        let store = try await fixture.open()
        try await store.insert("a")
        #expect(try #require(try size("-wal")) > 0)
        #expect(try await store.checkpoint())
        #expect(try size("-wal") == 0)
        #expect(try await store.bodies() == ["a"])
        await store.close()
    }

    @Test("A requested checkpoint returns false while another connection writes, and throws once the store is closed")
    func refused() async throws {
        var fixture = StoreFixture(folder)
        fixture.options.busyTimeout = .zero
        let store = try await fixture.open()
        try await store.insert("a")
        let other = try fixture.connection(isEncrypted: true)
        try other.execute("BEGIN IMMEDIATE")
        #expect(try await store.checkpoint() == false)
        try other.execute("ROLLBACK")
        #expect(try await store.checkpoint())
        other.close()
        await store.close()
        await #expect(throws: StoreError.self) { try await store.checkpoint() }
    }

    @Test("The connection that migrates does not checkpoint while other connections have the file open")
    func migrating() throws {
        let path = folder.path("app.db")
        try LegacyFile.write(path, script: "PRAGMA journal_mode = WAL; CREATE TABLE t(a)")
        let other = try Connection(path: path, mode: .readWrite)
        defer { other.close() }
        try other.proveReadable()
        let connection = try ConnectionProfile.migrating.open(path)
        try connection.execute("INSERT INTO t VALUES (zeroblob(5000000))")
        connection.close()
        #expect(try #require(try size()) < 100_000)
    }
}
