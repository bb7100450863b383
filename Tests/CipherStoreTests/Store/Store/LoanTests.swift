internal import CCipherEngine
internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Passes a connection out of its closure, which no app should do.
private final class Leak: @unchecked Sendable {
    var connection: Connection?
}

/// What a closure does to its connection does not outlast the loan.
@Suite(.timeLimit(.minutes(20)))
struct LoanTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(
        "A closure cannot close its connection, and cannot register anything that would outlast it",
        arguments: [true, false])
    func outlasting(isWrite: Bool) async throws {
        var fixture = StoreFixture(folder)
        fixture.options.maximumReaders = 1
        let store = try await fixture.open()
        let leak = Leak()
        let bodies: [@Sendable (Connection) throws -> Void] = [
            { try $0.register(SQLFunction("lower", argumentCount: 1) { _ in .null }) },
            { try $0.register(Collation(name: "NOCASE") { _, _ in 0 }) },
            { db in
                if isWrite { try db.execute("INSERT INTO chat VALUES ('ana', 'lost')") }
                db.close()
            },
            { db in try db.savepoint { db.close() } },
            { db in try db.forEachRow("SELECT 1 UNION ALL SELECT 2") { _ in db.close() } },
        ]
        for body in bodies {
            let error = try await failure(DatabaseError.self) {
                isWrite ? try await store.write(body) : try await store.read(body)
            }
            #expect(error.code == 21)
        }
        try await store.write { leak.connection = $0 }
        let connection = try #require(leak.connection)
        for body in bodies.prefix(2) {
            #expect(try await failure(DatabaseError.self) { try body(connection) }.code == 21)
        }
        connection.close()
        #expect(try await store.read { try $0.value(String.self, "SELECT lower('X')") } == "x")
        #expect(try await store.write { try $0.value(String.self, "SELECT lower('X')") } == "x")
        try await store.insert("kept")
        #expect(try await store.bodies() == ["kept"])
        await store.close()
    }

    @Test("A store lends C code its handle inside a closure, notifies observers of any change, and still checkpoints")
    func rawHandle() async throws {
        let store = try await StoreFixture(folder).open()
        try await store.write { try $0.execute("CREATE TABLE other(a)") }
        var changes = store.changes(in: ["other"]).makeAsyncIterator()
        let result = try await store.write { db in
            try db.withRawHandle {
                sqlite3_wal_hook($0, nil, nil)
                return sqlite3_exec($0, "INSERT INTO chat VALUES ('ana', zeroblob(5000000))", nil, nil, nil)
            }
        }
        #expect(result == SQLITE_OK)
        #expect(try await changes.next() != nil)
        // The connection's commits are counted again: the log has long exceeded a thousand frames.
        try await store.insert("next")
        #expect(try #require(try FileSystem.size(store.path)) > 5_000_000)
        await store.close()
    }
}
