internal import CipherDatabaseConversion
internal import CipherPrimitives
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Journals of another copy, or of another time, of the database.
extension HotJournalTests {
    /// Makes a journal of these pages.
    ///
    /// - Parameter count: The number of pages to which it would restore the file.
    private func journal(_ pages: [(number: Int, bytes: Data)], count: Int) -> Data {
        func big(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
        let size = pages[0].bytes.count
        let header = JournalHeader.magic + big(pages.count) + big(7) + big(count) + big(512) + big(size)
        return pages.reduce(into: Data(header + [UInt8](repeating: 0, count: 512 - header.count))) { journal, page in
            let bytes = [UInt8](page.bytes)
            let sum = stride(from: size - 200, to: 0, by: -200).reduce(7) { $0 + Int(bytes[$1]) }
            journal += big(page.number) + bytes + big(sum)
        }
    }

    /// What else is wrong with a file.
    enum OtherFault: CaseIterable { case none, appendedPage, damagedIndex }

    @Test(
        "A journal with an authentic, but older page is not played back if it only adds faults",
        arguments: 0...2, OtherFault.allCases)
    func olderPage(autoVacuum: Int, fault: OtherFault) throws {
        let writer = try Writer(isEncrypted: true, autoVacuum: autoVacuum)
        _ = try writer.commit(
            "CREATE TABLE t(a); INSERT INTO t VALUES ('old'); CREATE TABLE u(a); CREATE INDEX ui ON u(a)")
        let older = try writer.commit("INSERT INTO t VALUES (randomblob(30000))")
        for _ in 1...3 { _ = try writer.commit("INSERT INTO t SELECT randomblob(3000) FROM t") }
        let newer = try writer.commit("INSERT INTO t SELECT randomblob(3000) FROM t")
        let size = older.pageSize
        // The table's first page is its only leaf in the older version, and the root of a tree now. With auto-vacuum,
        // page 2 is the pointer map.
        let root = autoVacuum == 0 ? 2 : 3
        let page = older.before[(root - 1) * size..<root * size]
        var file = newer.after
        switch fault {
        case .none: break
        case .appendedPage: file += Data(count: size)
        case .damagedIndex: file[(root + 1) * size + 100] ^= 1
        }
        try expectStale(file, journal([(root, page)], count: file.count / size))
    }

    @Test("A journal of the time when the database was larger is not played back, whatever is appended to the file")
    func olderSize() throws {
        let writer = try Writer(isEncrypted: true, autoVacuum: 1)
        _ = try writer.commit("CREATE TABLE t(a); INSERT INTO t VALUES ('old')")
        let older = try writer.commit("INSERT INTO t VALUES (randomblob(30000))")
        for _ in 1...4 { _ = try writer.commit("INSERT INTO t SELECT randomblob(3000) FROM t") }
        let larger = try writer.commit("INSERT INTO t SELECT randomblob(3000) FROM t")
        let newer = try writer.commit("DELETE FROM t WHERE rowid % 3 = 0")
        let size = older.pageSize
        let missing = larger.after.count - newer.after.count
        #expect(missing > 0)
        let pages = [(1, larger.after.prefix(size)), (3, older.before[2 * size..<3 * size])]
        for appended in [0, missing] {
            try expectStale(
                newer.after + Data(count: appended), journal(pages, count: larger.after.count / size), "\(appended)")
        }
    }

    @Test(
        "A journal of the time when the database was larger is not played back, although it uses the appended pages")
    func olderTree() throws {
        let writer = try Writer(isEncrypted: true, autoVacuum: 1)
        _ = try writer.commit("CREATE TABLE t(a); INSERT INTO t VALUES ('old'); CREATE TABLE x(a)")
        let older = try writer.commit("INSERT INTO t VALUES (randomblob(30000))")
        let larger = try writer.commit(Self.fill("x", 60, "randomblob(3000)"))
        _ = try writer.commit("DELETE FROM x")
        let newer = try writer.commit(Self.fill("t", 20, "randomblob(3000)"))
        let size = older.pageSize
        #expect(newer.after.count < larger.after.count)
        // Page 2 is the pointer map; the roots of t and x follow.
        let count = larger.after.count / size
        let roots = [
            (1, larger.after.prefix(size)), (3, older.before[2 * size..<3 * size]),
            (4, larger.after[3 * size..<4 * size]),
        ]
        let last = (count, larger.after.suffix(size))
        let missing = larger.after.count - newer.after.count
        for pages in [roots, roots + [last]] {
            for appended in [Data(), Data(count: missing), larger.after.suffix(missing)] {
                try expectStale(newer.after + appended, journal(pages, count: count), "\(pages.count), \(appended)")
            }
        }
    }

    @Test("A journal of the time when the database was smaller is not played back", arguments: 0...2)
    func smallerSize(autoVacuum: Int) throws {
        let writer = try Writer(isEncrypted: true, autoVacuum: autoVacuum)
        _ = try writer.commit("CREATE TABLE t(a); INSERT INTO t VALUES ('old'); CREATE TABLE x(a)")
        let smaller = try writer.commit(Self.fill("x", 30, "randomblob(3000)"))
        _ = try writer.commit("DELETE FROM x WHERE rowid > 1")
        let newer = try writer.commit(Self.fill("t", 90, "randomblob(3000)"))
        let size = smaller.pageSize
        #expect(newer.after.count > smaller.after.count)
        let root = autoVacuum == 0 ? 2 : 3
        let pages = [(1, smaller.after.prefix(size)), (root, smaller.after[(root - 1) * size..<root * size])]
        try expectStale(newer.after, journal(pages, count: smaller.after.count / size))
    }

    @Test(
        "A journal with an older page is not played back if that page leads to pages that now belong to an index",
        arguments: [false, true])
    func olderPageOfIndex(isDamaged: Bool) throws {
        let writer = try Writer(isEncrypted: true)
        _ = try writer.commit(
            "CREATE TABLE t(a); INSERT INTO t VALUES ('old'); CREATE TABLE u(a); CREATE INDEX ui ON u(a)")
        let older = try writer.commit(Self.fill("t", 60, "randomblob(3000)"))
        _ = try writer.commit("DELETE FROM t WHERE rowid > 1")
        let newer = try writer.commit(Self.fill("u", 90, "randomblob(900)"))
        let size = older.pageSize
        #expect(newer.after.count >= older.after.count)
        var file = newer.after
        // In the root of the index.
        if isDamaged { file[3 * size + 100] ^= 1 }
        try expectStale(file, journal([(2, older.after[size..<2 * size])], count: file.count / size))
    }

    @Test("A journal with an older page is not played back, although it repairs another fault of the file")
    func olderPageBesideCurrent() throws {
        let writer = try Writer(isEncrypted: true)
        _ = try writer.commit(
            "CREATE TABLE t(a); INSERT INTO t VALUES ('old'); CREATE TABLE u(a); CREATE INDEX ui ON u(a)")
        let older = try writer.commit(Self.fill("t", 20, "randomblob(3000)"))
        let newer = try writer.commit(Self.fill("u", 90, "randomblob(900)"))
        let size = older.pageSize
        var file = newer.after
        let root = 3 * size..<4 * size
        file.replaceSubrange(root, with: older.before[root])
        let pages = [(2, older.before[size..<2 * size]), (4, newer.after[root])]
        let folder = try folder(file, journal: journal(pages, count: file.count / size))
        let before = try FolderDigest(folder.url)
        #expect(try storeError { try upgrade(folder) }?.code == .staleSidecar)
        #expect(try FolderDigest(folder.url) == before)
    }

    private static func fill(_ table: String, _ rows: Int, _ value: String) -> String {
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
            INSERT INTO \(table) SELECT \(value) FROM n
        """
    }

    @Test(
        "A journal is not played back if its schema makes a page the root of a table of another kind",
        arguments: [
            "(a PRIMARY KEY) WITHOUT ROWID", "(a PRIMARY KEY) WITHOUT /* (rows) */ ROWID",
            "(a PRIMARY KEY) WITHOUT -- )\nROWID", "(a DEFAULT '--', [/*] PRIMARY KEY)/**/WITHOUT\tROWID",
        ])
    func olderKind(definition: String) throws {
        let writer = try Writer(isEncrypted: true)
        _ = try writer.commit("CREATE TABLE t(a); INSERT INTO t VALUES (1); CREATE TABLE w\(definition)")
        let older = try writer.commit("INSERT INTO t VALUES (2)")
        let newer = try writer.commit("DROP TABLE w; CREATE TABLE v(a); INSERT INTO v VALUES (1), (2)")
        let size = older.pageSize
        #expect(older.before.count == newer.after.count)
        try expectStale(
            newer.after, journal([(1, older.before.prefix(size))], count: newer.after.count / size))
    }

    @Test("A journal is not played back unchecked because its super-journal is not a regular file")
    func irregularSuperJournal() throws {
        let commit = try committed(isEncrypted: true)
        for pageCount in [UInt8](0...3) {
            let folder = try folder(commit.after, journal: Data())
            let name = folder.path("app.db-mj01234567")
            var bytes = [UInt8](journal(of: commit, superJournal: name))
            // The journal would cut the file.
            bytes.replaceSubrange(16..<20, with: [0, 0, 0, pageCount])
            try Data(bytes).write(to: URL(filePath: folder.path("app.db-journal")))
            try FileManager.default.createSymbolicLink(atPath: name, withDestinationPath: "/dev/null")
            let before = try FolderDigest(folder.url)
            #expect(try storeError { try upgrade(folder) } != nil, "\(pageCount)")
            #expect(try FolderDigest(folder.url) == before, "\(pageCount)")
        }
    }

    @Test(
        "The journal of a killed first transaction is not played back into another database", arguments: [false, true])
    func firstTransactionOfOther(isEncrypted: Bool) throws {
        let killed = try firstTransaction(isEncrypted: isEncrypted)
        let journal = try Data(contentsOf: URL(filePath: killed.path + "-journal"))
        try expectStale(committed(isEncrypted: isEncrypted).after, journal)
    }

    @Test("The journal of an older or a newer copy of a plaintext database is not played back")
    func otherCopy() throws {
        let writer = try Writer(isEncrypted: false)
        let commits = try Self.scripts.map { try writer.commit($0) }
        for (index, commit) in commits.enumerated() {
            for (other, file) in commits.enumerated() where other > index || other < index - 1 {
                try expectStale(file.after, commit.journal, "journal \(index), file \(other)")
            }
        }
    }

    @Test("A journal without page 1 is not played back into a database that has grown since", arguments: [false, true])
    func withoutFirstPage(isEncrypted: Bool) throws {
        let writer = try Writer(isEncrypted: isEncrypted, isExclusive: true)
        _ = try writer.commit(Self.scripts[0])
        // In exclusive mode, only the first transaction must change page 1.
        let journal = try writer.commit("UPDATE t SET a = randomblob(9) WHERE rowid = 1").journal
        try expectStale(writer.commit("INSERT INTO t VALUES (randomblob(50000))").after, journal)
    }
}
