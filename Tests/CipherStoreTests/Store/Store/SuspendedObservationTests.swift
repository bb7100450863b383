internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite("Observing a suspended store", .timeLimit(.minutes(20)))
struct SuspendedObservationTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ name: String = "app.db") async throws -> EncryptedStore {
        try await StoreFixture(folder, name: name).open()
    }

    /// Makes another process insert a row.
    ///
    /// The process finds the file locked while the store opens a connection.
    private func insert(_ body: String, _ other: TestProgram.Running) throws {
        var answer = ""
        for _ in 0..<10_000 where !answer.hasPrefix("ok") {
            answer = try other.ask("INSERT INTO chat VALUES ('ben', '\(body)')")
        }
        try #require(answer.hasPrefix("ok"), "\(answer)")
    }

    @Test("An observation continues after a suspension, even if begun during it, and notices other processes again")
    func observing() async throws {
        let store = try await open()
        let observation = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }
        var iterator = observation.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        await store.suspend()
        let (asked, late) = (Gate(), observation)
        let waiting = Task {
            var iterator = late.makeAsyncIterator()
            asked.arrive()
            return try await iterator.next()
        }
        await asked.wait()
        let other = try TestProgram.built("CipherLockHolder").start(["sql", store.path, "7"])
        #expect(try other.line() == "ready")
        try insert("meanwhile", other)
        store.resume()
        #expect(try await waiting.value == 1)
        #expect(try await iterator.next() == 1)
        try insert("afterwards", other)
        #expect(try await iterator.next() == 2)
        _ = try other.wait()
    }

    @Test("Changed tables are reported after a suspension, even to observers that began during it")
    func tables() async throws {
        let store = try await open()
        await store.suspend()
        let asked = Gate()
        let told = Task {
            var iterator = store.changes(in: ["chat"]).makeAsyncIterator()
            asked.arrive()
            return try await iterator.next() != nil
        }
        await asked.wait()
        store.resume()
        try await store.insert("one")
        #expect(try await told.value)
    }

    @Test("No acknowledged write is lost in a thousand suspensions while eight tasks write")
    func often() async throws {
        let store = try await open()
        let writing = (0..<8).map { task in
            Task {
                var acknowledged: [String] = []
                while !Task.isCancelled {
                    let body = "\(task)-\(acknowledged.count)"
                    do {
                        try await store.insert(body)
                        acknowledged.append(body)
                    } catch let error as StoreError where error.code == .suspended {
                        await Task.yield()
                    } catch is CancellationError {}
                }
                return acknowledged
            }
        }
        for number in 0..<1_000 {
            await store.suspend(interruptingAfter: number.isMultiple(of: 3) ? .zero : nil)
            store.resume()
        }
        for task in writing { task.cancel() }
        var acknowledged: Set<String> = []
        for task in writing { acknowledged.formUnion(try await task.value) }
        let stored = try await store.bodies()
        // A failed write must have left no row; otherwise its retry would have added the row twice.
        #expect(Set(stored) == acknowledged)
        #expect(stored.count == acknowledged.count)
        await store.close()
        #expect(try folder.names == ["app.db"])
    }

    @Test("Eight observers of a thousand commits and a hundred suspensions get the last value and no partial commit")
    func observedOften() async throws {
        let store = try await open()
        try await store.write { db in
            try db.executeScript(
                "CREATE TABLE account(id INTEGER PRIMARY KEY, amount); INSERT INTO account VALUES (1, 1000), (2, 0)")
        }
        let tasks = (0..<8).map { _ in
            Task {
                var sums: Set<Int> = []
                for try await amounts in store.observe({
                    try $0.values(Int.self, "SELECT amount FROM account ORDER BY id")
                }) {
                    sums.insert(amounts[0] + amounts[1])
                    if amounts == [0, 1000] { break }
                }
                return sums
            }
        }
        for number in 0..<1_000 {
            try await store.write { db in
                try db.execute("UPDATE account SET amount = amount - 1 WHERE id = 1")
                try db.execute("UPDATE account SET amount = amount + 1 WHERE id = 2")
            }
            guard number % 10 == 9 else { continue }
            await store.suspend(interruptingAfter: number % 20 == 9 ? .zero : nil)
            store.resume()
        }
        for task in tasks { #expect(try await task.value == [1000]) }
    }
}
