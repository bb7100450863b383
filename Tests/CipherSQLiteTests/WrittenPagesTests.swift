internal import CipherSQLite
import Foundation
import Testing

struct WrittenPagesTests {
    private let fixture: EngineFixture
    private let connection: Connection

    init() throws {
        fixture = try EngineFixture()
        connection = try fixture.open()
        try connection.executeScript(
            """
            CREATE TABLE t(a); CREATE TABLE u(a);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
            INSERT INTO t SELECT zeroblob(300) FROM n;
            """)
    }

    /// Overwrites one page of the file with its earlier bytes.
    private func forget(page: Int, of earlier: [UInt8]) throws {
        let size = try connection.value(Int.self, "PRAGMA page_size") ?? 0
        let place = (page - 1) * size
        try DatabaseFile(path: fixture.path, access: .readWrite).write(
            Array(earlier[place..<place + size]), at: Int64(place))
    }

    private func bytes() throws -> [UInt8] { Array(try fixture.bytes()) }

    @Test("Pages that a connection wrote are in the file, even after a rollback, a truncation or a new page size")
    func kept() throws {
        let pages = try WrittenPages(of: connection)
        defer { pages.stop() }
        try connection.execute("UPDATE t SET a = randomblob(300) WHERE rowid % 3 = 0")
        // Pages beyond the cache are written before the transaction is rolled back.
        try connection.executeScript(
            "PRAGMA cache_size = 5; BEGIN; UPDATE t SET a = randomblob(400); ROLLBACK; PRAGMA cache_size = 2000;")
        #expect(try pages.firstLost(in: DatabaseFile(path: fixture.path)) == nil)
        try connection.executeScript("DELETE FROM t WHERE rowid > 100; VACUUM;")
        #expect(try pages.firstLost(in: DatabaseFile(path: fixture.path)) == nil)
        try connection.executeScript("PRAGMA page_size = 1024; VACUUM; INSERT INTO t VALUES (2);")
        #expect(try connection.value(Int.self, "PRAGMA page_size") == 1024)
        #expect(try pages.firstLost(in: DatabaseFile(path: fixture.path)) == nil)
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    @Test("A page that still has its former content is detected as lost, but only if the connection wrote it")
    func lost() throws {
        let before = try bytes()
        let pages = try WrittenPages(of: connection)
        defer { pages.stop() }
        try connection.execute("INSERT INTO u VALUES ('new')")
        let page = try #require(
            try connection.value(Int.self, "SELECT rootpage FROM sqlite_master WHERE name = 'u'"))
        let after = try bytes()
        try forget(page: page, of: before)
        #expect(try pages.firstLost(in: DatabaseFile(path: fixture.path)) == page)
        try forget(page: page, of: after)
        #expect(try pages.firstLost(in: DatabaseFile(path: fixture.path)) == nil)
        // This page was not written meanwhile.
        try forget(page: page + 1, of: [UInt8](repeating: 7, count: before.count))
        #expect(try pages.firstLost(in: DatabaseFile(path: fixture.path)) == nil)
    }

    @Test("Pages lost by a truncation are detected, and the connection works as before once it is not watched")
    func cutOff() throws {
        let before = try bytes()
        let pages = try WrittenPages(of: connection)
        try connection.execute("INSERT INTO t SELECT randomblob(300) FROM t")
        pages.stop()
        #expect(try pages.firstLost(in: DatabaseFile(path: fixture.path)) == nil)
        try connection.execute("INSERT INTO u VALUES (1)")
        #expect(try connection.value(Int.self, "SELECT count(*) FROM t") == 1000)
        connection.close()
        try Data(before).write(to: URL(filePath: fixture.path))
        #expect(try pages.firstLost(in: DatabaseFile(path: fixture.path)) != nil)
    }
}
