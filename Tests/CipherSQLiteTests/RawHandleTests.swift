internal import CCipherEngine
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// What C code may do to a connection through its handle, and what is restored afterwards.
struct RawHandleTests {
    private let connection: Connection

    init() throws {
        connection = try Connection(inMemoryWith: [])
        try connection.execute("CREATE TABLE t(a)")
        try connection.refuseWhatOutlastsLoans()
    }

    /// Lends the connection in a transaction, as a store does.
    private func write<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        try connection.transaction { try connection.lend(body) }
    }

    private func rows() throws -> [Int] { try connection.values(Int.self, "SELECT a FROM t ORDER BY a") }

    @Test("C code writes in the transaction, and the connection continues in it")
    func writes() throws {
        let result = try write { db in
            try db.execute("INSERT INTO t VALUES (1)")
            let result = try db.withRawHandle { sqlite3_exec($0, "INSERT INTO t VALUES (2)", nil, nil, nil) }
            try db.execute("INSERT INTO t VALUES (3)")
            return result
        }
        #expect(result == SQLITE_OK)
        #expect(try rows() == [1, 2, 3])
    }

    @Test("A handle cannot be lent again while it is lent, so the end of its transaction is noticed")
    func nested() throws {
        let error = #expect(throws: DatabaseError.self) {
            try write { db in
                try db.execute("INSERT INTO t VALUES (1)")
                try db.withRawHandle { _ in try db.withRawHandle { _ in } }
            }
        }
        #expect(error?.code == DatabaseError.misuse)
        #expect(try rows() == [])
        try write { db in try db.withRawHandle { _ = sqlite3_exec($0, "INSERT INTO t VALUES (2)", nil, nil, nil) } }
        #expect(try rows() == [2])
    }

    @Test("An error of the body is rethrown, and what the body wrote is rolled back")
    func throwing() throws {
        struct Refusal: Error {}
        #expect(throws: Refusal.self) {
            try write { db in
                try db.withRawHandle {
                    sqlite3_exec($0, "INSERT INTO t VALUES (1)", nil, nil, nil)
                    throw Refusal()
                }
            }
        }
        #expect(try rows() == [])
    }

    @Test("C code cannot do what would outlast the transaction, and the transaction continues")
    func refused() throws {
        for sql in ["COMMIT", "ROLLBACK", "ATTACH ':memory:' AS other", "PRAGMA rekey = 'x'"] {
            let result = try write { db in
                try db.execute("INSERT INTO t VALUES (1)")
                return try db.withRawHandle { sqlite3_exec($0, sql, nil, nil, nil) }
            }
            #expect(result & 0xff == SQLITE_AUTH, "\(sql)")
        }
        #expect(try rows() == [1, 1, 1, 1])
    }

    @Test(
        "A transaction ended by C code is an error even if the closure ignores it, and nothing is committed",
        arguments: ["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN; INSERT INTO t VALUES (7)"], [true, false])
    func ended(sql: String, isOverlooked: Bool) throws {
        let error = try databaseError {
            try write { db in
                try db.execute("INSERT INTO t VALUES (1)")
                do {
                    try db.withRawHandle {
                        sqlite3_set_authorizer($0, nil, nil)
                        sqlite3_exec($0, sql, nil, nil, nil)
                    }
                } catch {
                    // An app should not do this.
                    if !isOverlooked { throw error }
                }
            }
        }
        #expect(error.code == DatabaseError.misuse, "\(error)")
        #expect(try rows() == [])
        #expect(!connection.isInTransaction)
        try write { try $0.execute("INSERT INTO t VALUES (2)") }
        #expect(try rows() == [2])
    }

    @Test("Hooks and settings that C code removes are set again, such as the authorizer and the progress handler")
    func hooks() throws {
        var asked = 0
        try write { db in
            connection.setProgressHandler(every: 10) {
                asked += 1
                return true
            }
            try db.withRawHandle {
                sqlite3_set_authorizer($0, nil, nil)
                sqlite3_progress_handler($0, 0, nil, nil)
                sqlite3_busy_timeout($0, 0)
                sqlite3_extended_result_codes($0, 0)
            }
            #expect(try databaseError { try db.execute("PRAGMA synchronous = OFF") }.code == 23)
            try db.execute(
                "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT * FROM n")
            connection.setProgressHandler(every: 0, nil)
            try db.execute("CREATE TABLE u(a UNIQUE)")
            try db.execute("INSERT INTO u VALUES (1)")
            #expect(try databaseError { try db.execute("INSERT INTO u VALUES (1)") }.isUniqueViolation)
        }
        #expect(asked > 0)
    }

    @Test("Hooks that the body sets end with it")
    func ownHooks() throws {
        nonisolated(unsafe) var updates = 0
        try withUnsafeMutablePointer(to: &updates) { count in
            try write { db in
                try db.withRawHandle {
                    sqlite3_update_hook(
                        $0, { count, _, _, _, _ in count?.assumingMemoryBound(to: Int.self).pointee += 1 }, count)
                    sqlite3_exec($0, "INSERT INTO t VALUES (1)", nil, nil, nil)
                }
                try db.execute("INSERT INTO t VALUES (2)")
            }
        }
        #expect(updates == 1)
    }

    @Test("After a raw handle is used, everything is recorded as read and written")
    func access() throws {
        try write { db in
            db.recordWrites()
            let (_, reads) = try db.recordingReads { try db.withRawHandle { _ in } }
            #expect(reads.isEverything)
            #expect(db.takeWrites().isEverything)
        }
    }

    @Test("No raw handle is available once the transaction has ended or the connection is closed")
    func over() throws {
        var leaked: Connection?
        try write { leaked = $0 }
        connection.takeBack()
        #expect(try databaseError { try leaked?.withRawHandle { _ in } }.code == DatabaseError.misuse)
        connection.claim()
        connection.close()
        #expect(try databaseError { try connection.withRawHandle { _ in } }.code == DatabaseError.misuse)
    }
}
