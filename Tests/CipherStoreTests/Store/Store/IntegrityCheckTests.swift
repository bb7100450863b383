internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// A store's integrity check in slices.
@Suite(.timeLimit(.minutes(20)))
struct IntegrityCheckTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func openFilled(isEncrypted: Bool = true) async throws -> EncryptedStore {
        let store = try await StoreFixture(folder, isEncrypted: isEncrypted).open()
        try await store.write { db in
            try db.execute("CREATE TABLE \"a `b\"(v TEXT)")
            try db.execute("CREATE INDEX body ON chat(body)")
            for number in 0..<200 {
                try db.execute("INSERT INTO chat(uid, body) VALUES ('ana', \("number \(number)"))")
            }
        }
        return store
    }

    @Test(
        "Every table is a slice, after the pages and the schema, and no problem is found in a sound database",
        arguments: [true, false])
    func sound(isEncrypted: Bool) async throws {
        let store = try await openFilled(isEncrypted: isEncrypted)
        var slices: [IntegrityCheck.Slice] = []
        for try await slice in store.integrityCheck() { slices.append(slice) }
        #expect(slices.allSatisfy { $0.isSound && $0.unchecked == nil })
        #expect(slices.map(\.number) == Array(1...slices.count))
        #expect(Set(slices.map(\.count)) == [slices.count])
        let parts = slices.map(\.part)
        #expect(parts.contains(.pages) == (isEncrypted && Engine.current.hasCipherIntegrityCheck))
        if Engine.current.checksTables {
            #expect(parts.contains(.schema) && parts.contains(.table("chat")) && parts.contains(.table("a `b")))
        } else {
            #expect(parts.last == .structure)
        }
        await store.close()
    }

    @Test("No lock is held between slices: the store writes, drops a table, and is suspended")
    func between() async throws {
        var fixture = StoreFixture(folder)
        fixture.options.maximumReaders = 1
        try await openFilled().close()
        let store = try await fixture.open()
        var slices = store.integrityCheck().makeAsyncIterator()
        _ = try await slices.next()
        #expect(try await store.bodies().count == 200)
        try await store.write { try $0.execute("DROP TABLE \"a `b\"") }
        #expect(try await store.checkpoint())
        while let slice = try await slices.next() { #expect(slice.isSound && slice.unchecked == nil) }
        var more = store.integrityCheck().makeAsyncIterator()
        await store.suspend()
        let error = try await failure(StoreError.self) { try await more.next() }
        #expect(error.code == .suspended)
        store.resume()
        while let slice = try await more.next() { #expect(slice.isSound) }
        await store.close()
    }

    @Test("A row without its index entry is reported only for its table")
    func damagedIndex() async throws {
        let store = try await openFilled()
        await store.close()
        try StoreFixture(folder).insert(
            "INSERT INTO chat(uid, body) VALUES ('ana', 'in no index')", besides: "body")
        let again = try await StoreFixture(folder).open()
        var wrong: [IntegrityCheck.Slice.Part] = []
        for try await slice in again.integrityCheck() where !slice.isSound { wrong.append(slice.part) }
        #expect(wrong == [Engine.current.checksTables ? .table("chat") : .structure])
        await again.close()
    }

    @Test(
        "A changed page is reported, the check continues, and the store serves other reads",
        .enabled(if: Engine.current.hasCipherIntegrityCheck))
    func damagedPage() async throws {
        let store = try await openFilled()
        let root = try await store.read { db in
            try db.value(Int.self, "SELECT rootpage FROM sqlite_master WHERE name = 'a `b'")
        }
        await store.close()
        let url = folder.url.appending(path: "app.db")
        var bytes = try Data(contentsOf: url)
        bytes[(try #require(root) - 1) * CipherSettings().pageSize + 100] ^= 1
        try bytes.write(to: url)
        let again = try await StoreFixture(folder).open()
        var slices: [IntegrityCheck.Slice] = []
        for try await slice in again.integrityCheck() { slices.append(slice) }
        #expect(slices.first?.part == .pages && slices.first?.isSound == false)
        #expect(slices.count > 3)
        #expect(slices.contains { $0.part == .table("a `b") && !$0.isSound })
        #expect(slices.contains { $0.part == .table("chat") && $0.isSound })
        let first = try await again.read { try $0.value(String.self, "SELECT body FROM chat WHERE rowid = 1") }
        #expect(first == "number 0")
        await again.close()
    }

    @Test("An index that would be computed for hours is not computed, and the slice says so")
    func hostileIndex() async throws {
        try await openFilled(isEncrypted: false).close()
        let connection = try Connection(path: folder.path("app.db"), mode: .readWrite)
        try connection.editSchema(
            """
            UPDATE sqlite_master SET sql = 'CREATE INDEX body ON chat(instr(hex(zeroblob(7000000)), hex(zeroblob(3500000))
            || ''1''))' WHERE name = 'body'
            """)
        connection.close()
        let store = try await StoreFixture(folder, isEncrypted: false).open()
        var unchecked: [String] = []
        for try await slice in store.integrityCheck() { unchecked += slice.unchecked.map { [$0] } ?? [] }
        #expect(unchecked.count == 1 && unchecked.first?.contains("instr()") == true, "\(unchecked)")
        #expect(try await store.bodies().count == 200)
        await store.close()
    }

    @Test("A canceled check ends, even within a slice")
    func cancelled() async throws {
        let store = try await openFilled()
        let check = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            for try await _ in store.integrityCheck() {}
        }
        await #expect(throws: CancellationError.self) { try await check.value }
        #expect(try await store.bodies().count == 200)
        await store.close()
    }
}
