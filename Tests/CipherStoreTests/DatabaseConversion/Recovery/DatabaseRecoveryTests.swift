internal import CipherDatabaseConversion
internal import CipherErrors
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// A new database with everything that a damaged plaintext database still contains.
@Suite struct DatabaseRecoveryTests {
    @Test(
        "A healthy database is recovered completely, with its schema, header numbers and counters",
        arguments: [512, 4096])
    func healthy(pageSize: Int) throws {
        let fixture = try RecoveryFixture(pageSize: pageSize)
        let report = try fixture.recover()
        #expect(report.complete && report.lostPages == [] && report.lostAndFound == nil, "\(report)")
        try fixture.check(lost: [])
        #expect(report.rows == fixture.places.rows.count)
        let connection = try Connection(
            path: fixture.output, mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(Int.self, "PRAGMA user_version") == 17)
        #expect(try connection.value(Int.self, "PRAGMA application_id") == 5)
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
        let original = try Connection(path: fixture.path, mode: .readOnly)
        defer { original.close() }
        let schema: SQL = "SELECT type || name || tbl_name || coalesce(sql, '') FROM sqlite_master ORDER BY 1"
        #expect(try connection.values(String.self, schema) == original.values(String.self, schema))
        try connection.execute("INSERT INTO event(day) VALUES (1)")
        #expect(connection.lastInsertedRowID == 901)
    }

    @Test("If a single page is lost, only its own rows are lost", arguments: RecoveryFixture.Damage.allCases)
    func singlePages(kind: RecoveryFixture.Damage) throws {
        let fixture = try RecoveryFixture()
        let healthy = try Data(contentsOf: URL(filePath: fixture.path))
        let pages = UInt32(healthy.count / 1024)
        var random = SeededRandom(seed: 3)
        var chosen = Set((0..<12).map { _ in UInt32(2 + random.below(Int(pages) - 1)) })
        // Adds every root, and interior pages.
        chosen.formUnion(fixture.places.roots.values)
        for pages in fixture.places.interior.values { chosen.formUnion(pages.sorted().prefix(4)) }
        for page in chosen.sorted() where page > 1 {
            try fixture.damage([page], kind)
            try fixture.recover()
            try fixture.check(lost: [page])
            try FileManager.default.removeItem(atPath: fixture.output)
            try healthy.write(to: URL(filePath: fixture.path))
        }
    }

    @Test("No row is lost if only indexes are damaged")
    func indexes() throws {
        let fixture = try RecoveryFixture()
        var pages: Set<UInt32> = []
        for name in ["message_author", "sqlite_autoindex_event_1"] {
            pages.formUnion(try #require(fixture.places.pagesOfTrees[name]))
        }
        try fixture.damage(pages, .random)
        let report = try fixture.recover()
        #expect(report.complete && report.lostAndFound == nil, "\(report)")
        try fixture.check(lost: [])
        #expect(report.tables.first { $0.name == "message" }?.notes.first?.contains("message_author") == true)
    }
}
