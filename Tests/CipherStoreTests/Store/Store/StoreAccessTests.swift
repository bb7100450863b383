internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The app's own error.
private struct AppError: Error, Equatable {}

@Suite(.timeLimit(.minutes(20)))
struct StoreAccessTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(
        "A store shows every reader the latest commit, and no part of a running write",
        arguments: [true, false])
    func snapshots(isEncrypted: Bool) async throws {
        let store = try await StoreFixture(folder, isEncrypted: isEncrypted).open()
        try await store.insert("before")
        let (inserted, mayEnd) = (Gate(), Gate())
        let write = Task {
            try await store.write { db in
                try db.execute("INSERT INTO chat VALUES ('ana', 'after')")
                inserted.arrive()
                mayEnd.block()
            }
        }
        await inserted.wait()
        #expect(try await store.bodies() == ["before"])
        mayEnd.arrive()
        try await write.value
        #expect(try await store.bodies() == ["before", "after"])
    }

    @Test("A store keeps a reader's snapshot until its closure ends")
    func stableSnapshot() async throws {
        let store = try await StoreFixture(folder).open()
        try await store.insert("before")
        let (looked, changed) = (Gate(), Gate())
        let read = Task {
            try await store.read { db in
                let first = try db.value(Int.self, "SELECT count(*) FROM chat")
                looked.arrive()
                changed.block()
                return [first, try db.value(Int.self, "SELECT count(*) FROM chat")]
            }
        }
        await looked.wait()
        try await store.insert("after")
        changed.arrive()
        #expect(try await read.value == [1, 1])
    }

    @Test("A store runs four readers at the same time, each on its own connection")
    func parallelReaders() async throws {
        let store = try await StoreFixture(folder).open()
        let together = Gate()
        let connections = try await withThrowingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    try await store.read { db in
                        together.arrive()
                        together.block(until: 4)
                        return ObjectIdentifier(db)
                    }
                }
            }
            return try await group.reduce(into: Set<ObjectIdentifier>()) { $0.insert($1) }
        }
        #expect(connections.count == 4)
    }

    @Test("A store makes a further reader wait, and reuses its readers")
    func waitingReaders() async throws {
        var fixture = StoreFixture(folder)
        fixture.options.maximumReaders = 1
        let store = try await fixture.open()
        let (running, mayEnd) = (Gate(), Gate())
        let first = Task {
            try await store.read { db in
                running.arrive()
                mayEnd.block()
                return ObjectIdentifier(db)
            }
        }
        await running.wait()
        let second = Task { try await store.read { ObjectIdentifier($0) } }
        mayEnd.arrive()
        #expect(try await first.value == second.value)
    }

    @Test("A store runs writes one after the other, and loses none")
    func serialWrites() async throws {
        let store = try await StoreFixture(folder).open()
        try await store.write { try $0.execute("INSERT INTO chat VALUES ('counter', '0')") }
        try await withThrowingTaskGroup { group in
            for _ in 0..<50 {
                group.addTask {
                    try await store.write { db in
                        let count = try db.value(String.self, "SELECT body FROM chat").flatMap { Int($0) } ?? 0
                        try db.execute("UPDATE chat SET body = \(String(count + 1))")
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await store.bodies() == ["50"])
    }

    @Test("A store rolls back a write whose closure throws, and continues")
    func rollback() async throws {
        let store = try await StoreFixture(folder).open()
        await #expect(throws: AppError()) {
            try await store.write { db in
                try db.execute("INSERT INTO chat VALUES ('ana', 'lost')")
                throw AppError()
            }
        }
        #expect(try await store.bodies().isEmpty)
        try await store.insert("kept")
        #expect(try await store.bodies() == ["kept"])
    }

    @Test("A store refuses writes on a reader")
    func readOnlyReaders() async throws {
        let store = try await StoreFixture(folder).open()
        let error = try await failure(DatabaseError.self) {
            try await store.read { try $0.execute("INSERT INTO chat VALUES ('ana', 'no')") }
        }
        #expect(error.code == 8)
        #expect(try await store.bodies().isEmpty)
    }

    @Test(
        "A store enforces foreign keys, syncs every commit, and sorts in memory",
        arguments: [true, false])
    func settings(isEncrypted: Bool) async throws {
        let store = try await StoreFixture(folder, isEncrypted: isEncrypted).open()
        let read: @Sendable (Connection) throws -> [Int?] = { db in
            [
                try db.value(Int.self, "PRAGMA foreign_keys"), try db.value(Int.self, "PRAGMA synchronous"),
                try db.value(Int.self, "PRAGMA temp_store"),
            ]
        }
        #expect(try await store.read(read) == [1, 2, 2])
        #expect(try await store.write(read) == [1, 2, 2])
        #expect(try await store.read { try $0.value(Int.self, "PRAGMA query_only") } == 1)
    }

    @Test("A store registers the app's collations on every connection")
    func collations() async throws {
        var fixture = StoreFixture(folder)
        fixture.configuration.collations = [
            Collation(name: "BACKWARDS") { left, right in right.lexicographicallyPrecedes(left) ? -1 : 1 }
        ]
        let store = try await fixture.open()
        for body in ["a", "b"] { try await store.insert(body) }
        let query: @Sendable (Connection) throws -> [String] = {
            try $0.values(String.self, "SELECT body FROM chat ORDER BY body COLLATE BACKWARDS")
        }
        #expect(try await store.read(query) == ["b", "a"])
        #expect(try await store.write(query) == ["b", "a"])
    }

    // MARK: Transactions that SQLite ends

    @Test("A store runs nothing outside the transaction after SQLite has rolled it back")
    func rolledBackBySQLite() async throws {
        let store = try await StoreFixture(folder).open()
        let error = try await failure(StoreError.self) {
            try await store.write { db in
                try db.execute("INSERT INTO chat VALUES ('ana', 'one')")
                // SQLite does the same on a full disk, and the app ignores the error.
                try? db.execute("INSERT OR ROLLBACK INTO chat(rowid, body) VALUES (1, 'same rowid')")
                try? db.execute("INSERT INTO chat VALUES ('ana', 'would be committed alone')")
            }
        }
        #expect(error.code == .misuse)
        #expect(try await store.bodies().isEmpty)
    }

    // MARK: Nested calls

    @Test("A store refuses a call from inside its own closure, because it would wait for itself")
    func nested() async throws {
        let store = try await StoreFixture(folder).open()
        let calls: [@Sendable (EncryptedStore) throws -> Void] = [
            { try $0.writeBlocking { _ in } }, { try $0.readBlocking { _ in } }, { try $0.closeBlocking() },
        ]
        for call in calls {
            #expect(
                try await failure(StoreError.self) { try await store.write { _ in try call(store) } }.code == .misuse)
            #expect(
                try await failure(StoreError.self) { try await store.read { _ in try call(store) } }.code == .misuse)
        }
        try await store.insert("usable")
    }

    @Test("A store lets a closure call another store")
    func otherStore() async throws {
        var fixture = StoreFixture(folder)
        let store = try await fixture.open()
        fixture.configuration.databaseName = "other.db"
        let other = try await fixture.open()
        try await store.write { _ in
            try other.writeBlocking { try $0.execute("INSERT INTO chat VALUES ('ana', 'one')") }
        }
        #expect(try await other.bodies() == ["one"])
    }

    // MARK: Defence

    @Test("A store does not let SQL write to the schema table, on a writer or a reader")
    func defensive() async throws {
        let store = try await StoreFixture(folder).open()
        let harm: @Sendable (Connection) throws -> Void = { db in
            try db.execute("PRAGMA writable_schema = ON")
            try db.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE chat(x)' WHERE name = 'chat'")
        }
        await #expect(throws: DatabaseError.self) { try await store.write(harm) }
        await #expect(throws: DatabaseError.self) { try await store.read(harm) }
        try await store.insert("usable")
    }
}
