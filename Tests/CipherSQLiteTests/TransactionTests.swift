internal import CipherErrors
internal import CipherSQLite
import Testing

struct TransactionTests {
    private struct Stop: Error {}
    private let fixture: EngineFixture
    private let db: Connection

    init() throws {
        fixture = try EngineFixture()
        db = try fixture.open()
        try db.execute("CREATE TABLE t(v)")
    }

    private func insert(_ value: Int) throws { try db.execute("INSERT INTO t VALUES (\(value))") }
    private var values: [Int] { get throws { try db.values(Int.self, "SELECT v FROM t ORDER BY v") } }

    @Test("A transaction is committed if its closure returns, and rolled back if it throws")
    func commitAndRollback() throws {
        try db.transaction { try insert(1) }
        #expect(throws: Stop.self) {
            try db.transaction {
                try insert(2)
                throw Stop()
            }
        }
        #expect(try values == [1])
        #expect(!db.isInTransaction)
    }

    @Test("A transaction inside another is rolled back alone, at every depth")
    func savepoints() throws {
        try db.transaction {
            try insert(1)
            try db.transaction {
                try insert(2)
                try expectUndone {
                    try insert(3)
                    try db.savepoint { try insert(4) }
                }
                try db.savepoint { try insert(5) }
            }
            try expectUndone { try insert(6) }
        }
        #expect(try values == [1, 2, 5])
    }

    /// A separate function, because Swift 6.3.1 otherwise ran the first closure instead of the second.
    private func expectUndone(_ body: () throws -> Void) throws {
        #expect(throws: Stop.self) {
            try db.transaction {
                try body()
                throw Stop()
            }
        }
    }

    @Test(
        "A rollback that fails does not hide the reason for it, and its changes cannot be committed",
        .enabled("older engines do not interrupt a rollback") { Engine.current.sqliteVersionNumber >= 3_041_000 })
    func failingRollback() throws {
        // Only rollbacks fail, as if a statement that a virtual table keeps had been interrupted.
        func failing() throws {
            db.setProgressHandler(every: 1) { false }
            throw Stop()
        }
        for nested in [false, true] {
            #expect(throws: Stop.self) {
                try db.transaction {
                    try insert(1)
                    if nested { try db.savepoint(failing) } else { try failing() }
                }
            }
            db.setProgressHandler(every: 1, nil)
            db.rollBack()
        }
        #expect(throws: DatabaseError.self) {
            try db.transaction {
                try insert(2)
                do { try db.savepoint(failing) } catch is Stop {}
                db.setProgressHandler(every: 1, nil)
            }
        }
        #expect(!db.isInTransaction)
        try db.transaction { try insert(3) }
        #expect(try values == [3])
    }

    @Test("A transaction that SQLite rolled back ends with the error that caused the rollback")
    func rolledBackBySQLite() throws {
        try db.execute("CREATE UNIQUE INDEX i ON t(v)")
        let error = try databaseError {
            try db.transaction {
                try insert(1)
                try db.savepoint { try db.execute("INSERT OR ROLLBACK INTO t VALUES (1)") }
            }
        }
        #expect(error.extendedCode == 2067)
        #expect(!db.isInTransaction)
        #expect(try values.isEmpty)
    }

    @Test("A transaction is immediate unless another kind is requested")
    func kinds() throws {
        let other = try fixture.open()
        try db.transaction(.deferred) {
            try other.transaction { try other.execute("INSERT INTO t VALUES (1)") }
        }
        try db.transaction {
            let error = try databaseError { try other.transaction {} }
            #expect(error.code == 5)
        }
        try db.transaction(.exclusive) {
            let error = try databaseError { try other.values(Int.self, "SELECT v FROM t") }
            #expect(error.code == 5)
        }
    }

    @Test("If a transaction is required, statements run only inside one")
    func required() throws {
        try db.execute("BEGIN")
        db.requiresTransaction = true
        try insert(1)
        try db.execute("COMMIT")
        for attempt: (Connection) throws -> Void in [
            { try $0.execute("INSERT INTO t VALUES (2)") }, { try $0.executeScript("BEGIN; INSERT INTO t VALUES (2)") },
        ] {
            #expect(try databaseError { try attempt(db) }.extendedCode == 516)
        }
        db.requiresTransaction = false
        #expect(try values == [1])
    }
}
