internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// A store's vacuum.
@Suite(.timeLimit(.minutes(20)))
struct VacuumTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func openFilled(isEncrypted: Bool = true) async throws -> EncryptedStore {
        let store = try await StoreFixture(folder, isEncrypted: isEncrypted).open()
        try await store.write { db in
            for number in 0..<400 {
                let body = String(repeating: "\(number) ", count: 900)
                try db.execute("INSERT INTO chat(uid, body) VALUES ('ana', \(body))")
            }
            try db.execute("DELETE FROM chat WHERE rowid % 10 <> 0")
        }
        try await store.checkpoint()
        return store
    }

    private func rows(_ store: EncryptedStore) async throws -> [String] {
        try await store.read { try $0.values(String.self, "SELECT rowid || body FROM chat ORDER BY rowid") }
    }

    @Test("A vacuum removes the free pages and keeps rows, rowids, key and journal mode", arguments: [true, false])
    func shrinks(isEncrypted: Bool) async throws {
        let store = try await openFilled(isEncrypted: isEncrypted)
        let before = try await rows(store)
        let size = try #require(try FileSystem.size(store.path))
        let report = try await store.vacuum()
        #expect(report.outcome == .vacuumed)
        #expect(report.bytesAfter < size / 4)
        #expect(try await rows(store) == before)
        #expect(try await store.read { try $0.value(Int.self, "PRAGMA freelist_count") } == 0)
        #expect(try await store.read { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        try await store.insert("after")
        await store.close()
        #expect(try folder.names == ["app.db"])
        let again = try await StoreFixture(folder, isEncrypted: isEncrypted).open()
        #expect(try await rows(again).count == before.count + 1)
        #expect(again.report.outcome == (isEncrypted ? .opened : .openedPlaintext))
        await again.close()
    }

    @Test("Reads and writes made during a vacuum wait for it, and none is lost")
    func others() async throws {
        let store = try await openFilled()
        let before = try await rows(store).count
        let began = Gate()
        async let vacuum = store.vacuum { _ in began.arrive() }
        await began.wait()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask { try await store.insert("\(number)") }
                group.addTask { _ = try await store.bodies() }
            }
            try await group.waitForAll()
        }
        #expect(try await vacuum.outcome == .vacuumed)
        #expect(try await rows(store).count == before + 8)
        await store.close()
    }

    @Test("A canceled vacuum leaves the file unchanged, and the store continues")
    func cancelled() async throws {
        let store = try await openFilled()
        let before = try await rows(store)
        let building = Gate()
        let vacuum = Task {
            try await store.vacuum { progress in
                guard progress.stage == .building else { return }
                building.arrive()
                // Waits for the cancellation.
                while !Task.isCancelled, building.count < 2 { building.block(until: 2) }
            }
        }
        await building.wait()
        vacuum.cancel()
        building.arrive()
        await #expect(throws: CancellationError.self) { try await vacuum.value }
        #expect(try await rows(store) == before)
        try await store.insert("after")
        await store.close()
        #expect(try folder.names == ["app.db"])
    }

    @Test("A vacuum inside a closure, of a closed store, and of a file that another connection has open is refused")
    func refusals() async throws {
        let fixture = StoreFixture(folder)
        var quick = fixture
        quick.options.busyTimeout = .milliseconds(50)
        let store = try await quick.open()
        let nested = try await store.read { _ in
            #expect(throws: StoreError.self) { try store.vacuumBlocking() }
        }
        #expect(nested?.code == .misuse)
        let other = try fixture.connection(isEncrypted: true)
        try other.proveReadable()
        let busy = try await failure(StoreError.self) { try await store.vacuum() }
        #expect(busy.code == .busy)
        other.close()
        try await store.insert("still writes")
        await store.close()
        let closed = try await failure(StoreError.self) { try await store.vacuum() }
        #expect(closed.code == .closed)
    }
}
