internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite("A store without open connections", .timeLimit(.minutes(20)))
struct ClosedConnectionsTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ name: String = "app.db") async throws -> EncryptedStore {
        try await StoreFixture(folder, name: name).open()
    }

    @Test("No connection is open while a closure has exclusive use of the file, and calls made meanwhile wait")
    func alone() async throws {
        let store = try await open()
        try await store.insert("one")
        let (running, mayEnd, asked) = (Gate(), Gate(), Gate())
        let names = Task { [folder] in
            try await store.withConnectionsClosed { _, _ in
                running.arrive()
                mayEnd.block()
                return try folder.names
            }
        }
        await running.wait()
        let work = (0..<4).map { number in
            Task {
                asked.arrive()
                if number.isMultiple(of: 2) { try await store.insert("\(number)") }
                return try await store.bodies().count
            }
        }
        await asked.wait(until: 4)
        mayEnd.arrive()
        #expect(try await names.value == ["app.db"])
        for task in work { #expect(try await task.value >= 1) }
        #expect(try await store.bodies().count == 3)
    }

    @Test("A file that the closure puts in place is the one that the store and its observers use afterwards")
    func exchanged() async throws {
        let store = try await open()
        try await store.insert("old")
        let next = try await open("next.db")
        try await next.insert("new")
        await next.close()
        var iterator = store.observe { try $0.values(String.self, "SELECT body FROM chat") }.makeAsyncIterator()
        #expect(try await iterator.next() == ["old"])
        let unlocked = try FileUnlocking(
            DatabasePaths(folder.path("next.db")), provider: TestKeys.provider(), formats: [CipherSettings()]
        ).run(Inspector(path: folder.path("next.db")), hasPlaintextHeader: false) { _, file in file.fileKey }.result
        try await store.withConnectionsClosed { [folder] key, _ in
            try FileManager.default.removeItem(atPath: folder.path("app.db"))
            try FileManager.default.moveItem(atPath: folder.path("next.db"), toPath: folder.path("app.db"))
            key = unlocked
        }
        #expect(try await iterator.next() == ["new"])
        try await store.insert("more")
        #expect(try await iterator.next() == ["new", "more"])
    }

    @Test("Canceling a wait for exclusive use lets the store continue")
    func cancelledWait() async throws {
        let store = try await open()
        let (running, mayEnd) = (Gate(), Gate())
        let read = Task {
            try await store.read { _ in
                running.arrive()
                mayEnd.block()
            }
        }
        await running.wait()
        let alone = Task { try await store.withConnectionsClosed { _, _ in } }
        alone.cancel()
        await #expect(throws: CancellationError.self) { try await alone.value }
        #expect(try await store.bodies().isEmpty)
        try await store.insert("usable")
        mayEnd.arrive()
        try await read.value
    }

    /// A backup requests the key before its turn, for example while a vacuum replaces the file with its copy.
    @Test(
        "The key is available while the store itself replaces the file, and refused after another program replaced it"
    )
    func keyMeanwhile() throws {
        let path = folder.path("app.db")
        func putAnother() throws {
            // Both files exist at the same time, so that the new one has another inode.
            try LegacyFile.write(folder.path("next"), script: "CREATE TABLE chat(uid TEXT, body TEXT)")
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.moveItem(atPath: folder.path("next"), toPath: path)
        }
        try LegacyFile.write(path, script: "CREATE TABLE chat(uid TEXT, body TEXT)")
        let file = StoreFile(path, nil)
        #expect(try file.key(busyTimeout: .zero) == nil)
        try file.replacing { _ in
            try putAnother()
            #expect(try file.key(busyTimeout: .zero) == nil)
        }
        #expect(try file.key(busyTimeout: .zero) == nil)
        try putAnother()
        let error = #expect(throws: StoreError.self) { try file.key(busyTimeout: .zero) }
        #expect(error?.code == .replaced)
    }
}
