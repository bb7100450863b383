internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Pages in a log or a journal: the reader must use the same ones as SQLite.
@Suite struct SidecarPagesTests {
    private let folder = try? TemporaryFolder(inMemory: true)
    private static let queries = [
        "t": ReadDatabase.Query(columns: ["rowid", "a", "b"], from: "t NOT INDEXED ORDER BY rowid", nulls: [1]),
        "i": ReadDatabase.Query(columns: ["b", "rowid"], from: "t INDEXED BY i ORDER BY b, rowid"),
    ]

    private func path(_ name: String) throws -> String { try #require(folder).path(name) }

    private func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(filePath: path))) }

    private func write(_ bytes: [UInt8], _ path: String) throws { try Data(bytes).write(to: URL(filePath: path)) }

    /// Returns what SQLite reads in copies of these files.
    private func bySQLite(_ database: [UInt8], _ sidecar: [UInt8], _ ending: String) throws -> ReadDatabase {
        let folder = try TemporaryFolder(inMemory: true)
        try write(database, folder.path("app.db"))
        try write(sidecar, folder.path("app.db" + ending))
        let connection = try Connection(path: folder.path("app.db"), mode: .readWrite)
        defer { connection.close() }
        return try ReadDatabase(connection, Self.queries)
    }

    private func byReader(_ database: [UInt8], log: [UInt8]) throws -> ReadDatabase {
        let (database, log) = (HeldBytes(database), HeldBytes(log))
        guard let versions = try LogHeader(log)?.committedPages(in: log) else {
            return try ReadDatabase(#require(try FilePages(database)))
        }
        return try ReadDatabase(#require(try VersionedPages(database, versions, in: log)))
    }

    private func byReader(_ database: [UInt8], journal: [UInt8]) throws -> ReadDatabase {
        let (database, journal) = (HeldBytes(database), HeldBytes(journal))
        let header = try #require(try JournalHeader(journal))
        guard let versions = try header.originalPages(in: journal, pageSize: FileHeader(of: database)?.pageSize ?? 0)
        else {
            return try ReadDatabase(#require(try FilePages(database)))
        }
        return try ReadDatabase(#require(try VersionedPages(database, versions, in: journal)))
    }

    // MARK: Logs

    private static let table = """
        CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE INDEX i ON t(b);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(i % 90)) FROM n;
        """

    /// A database in WAL mode with a log of several commits, as a killed app leaves it.
    private func logged(pageSize: Int, _ more: (Connection) throws -> Void = { _ in }) throws -> (
        database: [UInt8], log: [UInt8]
    ) {
        let path = try path("log-\(UUID().uuidString).db")
        return try unclosed(path, "-wal", pageSize: pageSize) { connection in
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript(text: "PRAGMA wal_autocheckpoint = 0")
            for number in 0..<4 {
                try connection.executeScript(
                    text:
                        "UPDATE t SET b = 'commit \(number) ' || a WHERE a % 4 = \(number); DELETE FROM t WHERE a = \(number * 9)"
                )
            }
            try more(connection)
        }
    }

    /// Returns the files of a database as a killed app leaves them.
    ///
    /// They are in memory, because no test here depends on a disk.
    private func unclosed(
        _ path: String, _ ending: String, pageSize: Int, _ body: (Connection) throws -> Void
    ) throws -> ([UInt8], [UInt8]) {
        let connection = try Connection(path: path, mode: .create)
        defer { connection.close() }
        try connection.executeScript(text: "PRAGMA page_size = \(pageSize); \(Self.table)")
        try body(connection)
        return (try bytes(path), try bytes(path + ending))
    }

    /// Returns where the frames of a log begin.
    private func frames(_ log: [UInt8]) -> [Int] {
        Array(stride(from: 32, to: log.count - 24, by: 24 + Int(log.big32(8))))
    }

    @Test(
        "The newest committed version of each page is read, wherever the log was cut or changed",
        arguments: [512, 4096, 65536])
    func log(pageSize: Int) throws {
        let (database, log) = try logged(pageSize: pageSize)
        let whole = try bySQLite(database, log, "-wal")
        #expect(try byReader(database, log: log) == whole)
        #expect(try byReader(database, log: []) != whole)
        let frames = frames(log)
        #expect(frames.count >= 4)
        var seen: [ReadDatabase] = []
        for (number, frame) in frames.enumerated() {
            let cut = Array(log[..<(frame + number % 24)])
            var changes = [cut]
            for offset in [0, 4, 8, 12, 16, 20, 24, 23 + pageSize] {
                var changed = log
                changed[frame + offset] ^= 1
                changes.append(changed)
            }
            for (index, change) in changes.enumerated() where index == 0 || index == 1 + number % 8 {
                let expected = try bySQLite(database, change, "-wal")
                #expect(try byReader(database, log: change) == expected, "frame \(number), change \(index)")
                if !seen.contains(expected) { seen.append(expected) }
            }
        }
        // Each of the commits was the last one in some log.
        #expect(seen.count >= 5)
    }

    @Test(
        "A log with a changed header is read as SQLite reads it",
        arguments: [0, 3, 8, 11, 13, 16, 20, 24, 28])
    func header(offset: Int) throws {
        let (database, log) = try logged(pageSize: 1024)
        var changed = log
        changed[offset] ^= 1
        #expect(try byReader(database, log: changed) == bySQLite(database, changed, "-wal"))
    }

    @Test(
        "Frames after the last commit of a log are ignored: an unfinished transaction, and frames from before a reset"
    )
    func tails() throws {
        let (database, log) = try logged(pageSize: 512) { connection in
            // Exceeds the cache, so that the log contains frames of the transaction.
            try connection.executeScript("PRAGMA cache_size = 1; BEGIN; UPDATE t SET b = 'never' || b || zeroblob(900)")
        }
        let versions = try #require(try LogHeader(HeldBytes(log))?.committedPages(in: HeldBytes(log)))
        #expect(versions.offsets.values.contains { Int($0) < log.count / 2 })
        let last = try #require(versions.offsets.values.max())
        #expect(Int(last) + 512 + 24 < log.count)
        #expect(try byReader(database, log: log) == bySQLite(database, log, "-wal"))

        let (later, reset) = try logged(pageSize: 512) { connection in
            _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(RESTART)")
            try connection.executeScript("UPDATE t SET b = 'after the reset' WHERE a = 77")
        }
        let header = try #require(try LogHeader(HeldBytes(reset)))
        var fresh = 0
        try header.forEachFrame(of: HeldBytes(reset)) { _ in fresh += 1 }
        #expect(fresh > 0 && fresh < frames(reset).count)
        #expect(try byReader(later, log: reset) == bySQLite(later, reset, "-wal"))
    }

    // MARK: Journals

    /// Returns a database before and during a transaction, and its journal.
    private func journaled(pageSize: Int) throws -> (before: [UInt8], database: [UInt8], journal: [UInt8]) {
        let path = try path("journal-\(UUID().uuidString).db")
        var before: [UInt8] = []
        let (database, journal) = try unclosed(path, "-journal", pageSize: pageSize) { connection in
            before = try bytes(path)
            try connection.executeScript(
                "PRAGMA cache_size = 1; BEGIN; UPDATE t SET b = 'never ' || b || zeroblob(900)")
            try connection.executeScript("DELETE FROM t WHERE a % 2; UPDATE t SET b = a")
        }
        return (before, database, journal)
    }

    @Test("A hot journal restores the original pages, wherever it was cut or changed", arguments: [512, 4096])
    func journal(pageSize: Int) throws {
        let (before, database, journal) = try journaled(pageSize: pageSize)
        let original = try ReadDatabase(#require(try FilePages(HeldBytes(before))))
        #expect(before != database)
        #expect(try byReader(database, journal: journal) == original)
        let header = try #require(try JournalHeader(HeldBytes(journal)))
        #expect(try header.segments(in: HeldBytes(journal)).count > 1)
        // The offsets of all headers, and of records in each segment.
        var offsets = [0, 8, 11, 12, 19, 22, 26]
        for segment in try header.segments(in: HeldBytes(journal)) {
            offsets += [Int(segment.first), Int(segment.first) + 3, Int(segment.first) + 4 + pageSize - 200]
            offsets += [Int(segment.first) + 4 + pageSize, Int(segment.first) - Int(header.sector)]
        }
        for offset in offsets where offset < journal.count {
            var changed = journal
            changed[offset] ^= 0x10
            try expectSame(database, changed, "offset \(offset)")
            try expectSame(database, Array(journal[..<max(28, offset)]), "cut at \(offset)")
        }
        // The file that a writer in the mode PERSIST leaves after a commit.
        let spent = [UInt8](repeating: 0, count: 28) + journal[28...]
        #expect(try JournalHeader(HeldBytes(spent))?.originalPages(in: HeldBytes(spent)) == nil)
    }

    @Test("Like SQLite, the reader does not play back a journal shorter than 512 bytes", arguments: [511, 512])
    func shortJournal(length: Int) throws {
        let (before, database, journal) = try journaled(pageSize: 512)
        let grown = database + [UInt8](repeating: 0, count: max(0, before.count + 512 - database.count))
        let short = Array(journal[..<length])
        let path = try path("short-\(length).db")
        try write(grown, path)
        try write(short, path + "-journal")
        let connection = try Connection(path: path, mode: .readWrite)
        defer { connection.close() }
        _ = try? connection.value(Int.self, "SELECT count(*) FROM sqlite_master")
        let isPlayedBack = try bytes(path).count == before.count
        #expect(isPlayedBack == (length == 512))
        let header = try #require(try JournalHeader(HeldBytes(short)))
        #expect(try (header.originalPages(in: HeldBytes(short)) != nil) == isPlayedBack)
    }

    /// A partial rollback may leave any state: if SQLite cannot read it, the reader cannot either.
    private func expectSame(_ database: [UInt8], _ journal: [UInt8], _ comment: Comment) throws {
        guard let expected = try? bySQLite(database, journal, "-journal") else { return }
        guard let read = try? byReader(database, journal: journal) else { return }
        #expect(read == expected, comment)
    }

    @Test(
        "Journals of every sector size, of several segments and without a record count are rolled back as in SQLite",
        arguments: [32, 512, 4096, 65536])
    func sectors(sector: Int) throws {
        let (before, database, journal) = try journaled(pageSize: 512)
        let header = try #require(try JournalHeader(HeldBytes(journal)))
        let versions = try #require(try header.originalPages(in: HeldBytes(journal)))
        let original = try ReadDatabase(#require(try FilePages(HeldBytes(before))))
        for (inSegment, counts) in [(1, true), (7, true), (1000, true), (1000, false)] {
            var made: [UInt8] = []
            let pages = versions.offsets.keys.sorted()
            for start in stride(from: 0, to: pages.count, by: inSegment) {
                made += [UInt8](repeating: 0xee, count: (sector - made.count % sector) % sector)
                let part = pages[start..<min(pages.count, start + inSegment)]
                let (count, sum) = (counts ? UInt32(part.count) : .max, UInt32(start * 77 + 5))
                let numbers = [count, sum, versions.pageCount, UInt32(sector), 512].flatMap(Self.big32)
                made += JournalHeader.magic + numbers + [UInt8](repeating: 0, count: max(0, sector - 28))
                for page in part {
                    let content = before[(Int(page - 1) * 512)...].prefix(512)
                    let bytes = [312, 112].reduce(sum) { $0 &+ UInt32(content[content.startIndex + $1]) }
                    made += Self.big32(page) + content + Self.big32(bytes)
                }
            }
            #expect(try bySQLite(database, made, "-journal") == original.only(["t", "i"]), "\(inSegment)")
            #expect(try byReader(database, journal: made) == original, "\(inSegment)")
        }
    }

    private static func big32(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * UInt32($0))) }
    }
}

extension ReadDatabase {
    /// Returns some of the trees.
    func only(_ names: [String]) -> ReadDatabase {
        var copy = self
        copy.trees = trees.filter { names.contains($0.key) }
        return copy
    }
}
