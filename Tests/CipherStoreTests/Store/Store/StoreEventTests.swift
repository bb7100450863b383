internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite("Events of a store", .timeLimit(.minutes(20)))
struct StoreEventTests {
    private let folder: TemporaryFolder
    private let log = Log()

    init() throws {
        folder = try TemporaryFolder()
    }

    private final class Log: @unchecked Sendable {
        // Read and written only under `lock`.
        private let lock = NSLock()
        private var events: [StoreEvent] = []

        func add(_ event: StoreEvent) { lock.withLock { events.append(event) } }
        var lines: [String] { lock.withLock { events.map(\.description) } }
        var all: [StoreEvent] { lock.withLock { events } }
    }

    private var fixture: StoreFixture {
        var fixture = StoreFixture(folder)
        fixture.options.events = { [log] in log.add($0) }
        return fixture
    }

    /// The lines without the file's name.
    private func texts() -> [String] { log.lines.map { $0.replacing("\(folder.path("app.db")): ", with: "") } }

    @Test("An upgrade reports its stages in order, what it opened, and the store's later events up to its end")
    func life() async throws {
        try fixture.writeLegacy()
        let store = try await fixture.open()
        try await store.insert("secret words")
        #expect(try await store.checkpoint())
        await store.suspend()
        store.resume()
        await store.close()
        await store.close()
        let texts = texts()
        #expect(texts.first == "opening")
        let stages = texts.filter { $0.hasPrefix("upgrade: ") }
        #expect(stages.count > 2)
        #expect(Set(stages).count == stages.count)
        let opened = try #require(texts.firstIndex { $0.hasPrefix("encrypted, version 3 to ") })
        let warnings = texts.filter { $0.hasPrefix("warning: ") }
        #expect(warnings.count == store.report.warnings.count)
        #expect(
            Array(texts[(opened + 1 + warnings.count)...]) == ["checkpoint", "suspended", "resumed", "closed"])
        #expect(!texts.joined().contains("secret"))
    }

    @Test("A failed opening is reported with its error, without the key")
    func failed() async throws {
        await (try fixture.open()).close()
        let before = log.all.count
        _ = try await failure(StoreError.self) {
            try await fixture.open(TestKeys.provider { try .passphrase("hunter2") })
        }
        let events = log.all[before...]
        #expect(events.count == 2)
        guard case .openingFailed(let error)? = events.last?.kind else {
            Issue.record("\(log.lines)")
            return
        }
        #expect((error as? StoreError)?.code == .keyDoesNotFit)
        #expect(!log.lines.joined().contains("hunter2"))
    }

    @Test("A write that waited for another connection is reported, and so is a checkpoint after many pages")
    func waits() async throws {
        var fixture = fixture
        fixture.options.busyTimeout = .milliseconds(150)
        let store = try await fixture.open()
        let other = try fixture.connection(isEncrypted: true)
        try other.execute("BEGIN IMMEDIATE")
        let error = try await failure(DatabaseError.self) { try await store.insert("never") }
        #expect(error.isBusy)
        other.close()
        #expect(texts().contains { $0.hasPrefix("a write waited ") })
        try await store.write { db in
            for _ in 0..<1_200 { try db.execute("INSERT INTO chat VALUES ('ana', hex(zeroblob(2000)))") }
        }
        #expect(texts().last == "checkpoint")
        await store.close()
    }

    @Test("A read-only store reports its opening and its end")
    func readOnly() async throws {
        let fixture = fixture
        await (try fixture.open()).close()
        let before = log.all.count
        let store = try await EncryptedStore.openReadOnly(
            fixture.configuration, directory: folder.url, keyProvider: TestKeys.provider(), options: fixture.options)
        await store.close()
        #expect(texts()[before...].map { String($0.prefix(6)) } == ["openin", "opened", "closed"])
    }
}
