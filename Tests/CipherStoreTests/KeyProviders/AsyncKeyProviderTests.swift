internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

@Suite("An async key provider", .timeLimit(.minutes(20)))
struct AsyncKeyProviderTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// An answer that never comes.
    ///
    /// It records that its task was canceled.
    private static func never(_ asked: Gate, _ cancelled: Gate) -> AsyncKeyProvider {
        .async { _, _ in
            asked.arrive()
            do {
                try await Task.sleep(for: .seconds(3_600))
            } catch {
                cancelled.arrive()
                throw error
            }
            return try TestKeys.raw()
        }
    }

    @Test("The key of an async closure creates a database, and opens it again")
    func opens() async throws {
        let fixture = StoreFixture(folder)
        let provider = AsyncKeyProvider.async { purpose, database in
            await Task.yield()
            #expect(database.hasSuffix("app.db"))
            return try TestKeys.raw(purpose == .existing ? 7 : 7)
        }
        let store = try await fixture.open(provider)
        try await store.insert("one")
        await store.close()
        #expect(try await fixture.open(provider).bodies() == ["one"])
        #expect(try await fixture.open().bodies() == ["one"])
    }

    @Test("Canceling the opening cancels the closure's task")
    func cancelled() async throws {
        let (asked, cancelled) = (Gate(), Gate())
        let fixture = StoreFixture(folder)
        let opening = Task { try await fixture.open(Self.never(asked, cancelled)) }
        await asked.wait()
        opening.cancel()
        await #expect(throws: CancellationError.self) { try await opening.value }
        await cancelled.wait()
        #expect(try folder.names.isEmpty)
    }

    @Test("A key that does not arrive in time is keyStoreUnavailable, and the closure's task is canceled")
    func timeout() async throws {
        let (asked, cancelled) = (Gate(), Gate())
        var fixture = StoreFixture(folder)
        fixture.options.keyTimeout = .milliseconds(10)
        let error = try await failure(StoreError.self) { try await fixture.open(Self.never(asked, cancelled)) }
        #expect(error.code == .keyStoreUnavailable)
        await cancelled.wait()
    }

    private struct VaultError: Error {}

    @Test("An error thrown by the closure is reported by its code, without its text")
    func failing() async throws {
        let fixture = StoreFixture(folder)
        let thrown = try await failure(StoreError.self) {
            try await fixture.open(AsyncKeyProvider.async { _, _ in throw VaultError() })
        }
        #expect(thrown.code == .keyUnavailable)
        let malformed = try await failure(StoreError.self) {
            try await fixture.open(AsyncKeyProvider.async { _, _ in try CipherKey.passphrase("") })
        }
        #expect(malformed.code == .keyMalformed)
    }

    @Test("Outside an opening, the provider waits for the closure without a limit")
    func alone() async throws {
        let provider = AsyncKeyProvider.async { _, _ in
            await Task.yield()
            return try TestKeys.raw()
        }
        // The closure needs a thread of the tasks.
        let keys = try await DetachedThread.run {
            [try provider.key(for: .existing, database: "/app.db"), try provider.plannedKey(database: "/app.db")]
        }
        #expect(try keys == [TestKeys.raw(), TestKeys.raw()])
    }
}
