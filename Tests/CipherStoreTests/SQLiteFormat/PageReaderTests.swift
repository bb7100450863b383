internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// The contents that the page reader finds in intact databases.
@Suite struct PageReaderTests {
    private let folder = try? TemporaryFolder(inMemory: true)

    private func path(_ name: String) throws -> String { try #require(folder).path(name) }

    @Test(
        "Every row and index entry of a generated database is read as SQLite reads it, and every page has one use",
        arguments: 0..<8)
    func differential(part: UInt64) throws {
        for seed in (part * 40)..<(part * 40 + 40) {
            let database = GeneratedDatabase(seed: seed)
            let path = try path("\(seed).db")
            var expected: ReadDatabase?
            var free = 0
            try database.write(path) { connection in
                expected = try ReadDatabase(connection, database.queries)
                free = try connection.value(Int.self, "PRAGMA freelist_count") ?? 0
            }
            let bytes = try HeldBytes(contentsOf: path)
            let header = try #require(try FileHeader(of: bytes))
            let source = try #require(try FilePages(bytes))
            #expect(source.geometry.usableSize == database.pageSize - database.reserved)
            var read = try ReadDatabase(source)
            read.trees = read.trees.filter { database.queries[$0.key] != nil }
            let difference = try #require(expected).difference(from: read)
            #expect(difference == nil, "seed \(seed): \(difference ?? "")")
            try checkUsage(source, header, free, database, seed)
        }
    }

    private func checkUsage(
        _ source: some PageSource, _ header: FileHeader, _ free: Int, _ database: GeneratedDatabase, _ seed: UInt64
    ) throws {
        let usage = try PageUsage(of: source, header: header)
        #expect(usage.damage == [] && usage.lostPages.isEmpty, "seed \(seed)")
        let list = try #require(usage.freeList)
        #expect(list.trunks.count + list.leaves.count == free && Int(header.freePages) == free, "seed \(seed)")
        #expect(header.hasPointerMap == (database.vacuum != "NONE"))
        #expect(header.isIncrementalVacuum == (database.vacuum == "INCREMENTAL"))
        let encodings = ["UTF-8": TextEncoding.utf8, "UTF-16le": .utf16LittleEndian, "UTF-16be": .utf16BigEndian]
        #expect(header.textEncoding == encodings[database.encoding])
        guard header.hasPointerMap else { return }
        let map = PointerMap(source.geometry)
        for page in 2...max(2, source.pageCount) where page <= source.pageCount {
            let kinds: [PointerMap.Kind?]
            switch usage[page] {
            case .tree(let root): kinds = [root == page ? .root : .tree]
            case .overflow: kinds = [.firstOverflow, .laterOverflow]
            case .freeTrunk, .freeLeaf: kinds = [.free]
            default: kinds = [nil]
            }
            #expect(kinds.contains(try map.entry(of: page, in: source)?.kind), "seed \(seed), page \(page)")
        }
    }

    @Test(
        "Payloads at each limit of a page are read completely, for every number of reserved bytes",
        arguments: [(512, 0), (512, 32), (1024, 255), (4096, 80), (8192, 255), (65536, 0), (65536, 255)])
    func borders(pageSize: Int, reserved: Int) throws {
        let usable = pageSize - reserved
        let (table, index, least) = (usable - 35, (usable - 12) * 64 / 255 - 23, (usable - 12) * 32 / 255 - 23)
        var sizes = Set(0...70)
        // The sizes at which the length on the page jumps: the largest that fits, and each further overflow page.
        for border in [table, index, least] {
            for pages in 0...3 {
                sizes.formUnion((border + pages * (usable - 4) - 10)...(border + pages * (usable - 4) + 3))
            }
        }
        let pattern = [UInt8](unsafeUninitializedCapacity: 4 * pageSize + 512) { buffer, count in
            count = buffer.count
            for index in 0..<count { buffer[index] = UInt8(truncatingIfNeeded: index &* 7 ^ index >> 8) }
        }
        let path = try path("borders-\(pageSize)-\(reserved).db")
        try GeneratedDatabase.begin(path, pageSize: pageSize, reserved: reserved)
        try LegacyFile.write(path) { connection in
            try connection.executeScript(
                """
                PRAGMA synchronous = OFF; CREATE TABLE t(id INTEGER PRIMARY KEY, b);
                CREATE TABLE w(b PRIMARY KEY) WITHOUT ROWID; BEGIN;
                """)
            for size in sizes.sorted() where size >= 0 {
                let content = Array(pattern[(size % 251)...].prefix(size))
                try connection.execute("INSERT INTO t VALUES (\(size), \(content))")
                try connection.execute("INSERT INTO w VALUES (\(content))")
            }
            try connection.execute("COMMIT")
        }
        let source = try #require(try FilePages(HeldBytes(contentsOf: path)))
        var locals: [UInt32: [Int: Int]] = [:]
        for entry in try SchemaEntry.all(in: source, damage: { throw $0 }) where entry.sql != nil {
            var cursor = TreeCursor(source, root: entry.rootPage)
            while let cell = try cursor.next() {
                locals[cursor.isOfTable == true ? 0 : 1, default: [:]][cell.length] = cell.local.count
                var record = try RecordReader(cursor.payload(of: cell), page: cell.page)
                if cursor.isOfTable == true { _ = try record.next() }
                guard case .blob(let bytes) = try record.next() else {
                    Issue.record("no blob")
                    continue
                }
                let size = bytes.count
                #expect([UInt8](bytes) == Array(pattern[(size % 251)...].prefix(size)))
                #expect(cursor.isOfTable == false || cell.rowid == Int64(size))
            }
        }
        let (inTable, inIndex) = (try #require(locals[0]), try #require(locals[1]))
        #expect(inTable.count == sizes.filter { $0 >= 0 }.count && inIndex.count == inTable.count)
        #expect(inTable[table] == table && inTable[table + 1] == least)
        #expect(inTable[table + usable - 4] == table && inTable[table + usable - 3] == least)
        #expect(inIndex[index] == index && inIndex[index + usable - 4] == index && inIndex[index + usable - 3] == least)
    }

    @Test("A free list of several trunks is followed to its end")
    func freeList() throws {
        let path = try path("free.db")
        try LegacyFile.write(
            path,
            script: """
                PRAGMA page_size = 512; CREATE TABLE keep(a); CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(300000));
                DROP TABLE t;
                """)
        let bytes = try HeldBytes(contentsOf: path)
        let header = try #require(try FileHeader(of: bytes))
        let list = try FreeList(in: #require(try FilePages(bytes)), first: header.firstFreePage) { throw $0 }
        #expect(list.trunks.count > 3 && list.trunks.count + list.leaves.count == Int(header.freePages))
    }

    @Test("A cursor that skips a leaf continues with the next one, and the pieces of a payload add up to the whole")
    func skipping() throws {
        let path = try path("skip.db")
        try LegacyFile.write(
            path,
            script: """
                PRAGMA page_size = 512; CREATE TABLE t(a, b);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                INSERT INTO t SELECT i, zeroblob(i % 50 * 40) FROM n;
                """)
        let source = try #require(try FilePages(HeldBytes(contentsOf: path)))
        var cursor = TreeCursor(source, root: 2)
        var pages: [UInt32] = []
        while let cell = try cursor.next() {
            pages.append(cell.page)
            cursor.skipLeaf()
        }
        #expect(pages.count > 20 && Set(pages).count == pages.count)
        var whole = TreeCursor(source, root: 2)
        while let cell = try whole.next() {
            var pieces: [UInt8] = []
            try whole.forEachPiece(of: cell) { pieces += $0 }
            #expect(try whole.payload(of: cell).elementsEqual(pieces) && pieces.count == cell.length)
        }
    }

    @Test("The parts of a table contain its rows in order, and a search can start after any rowid")
    func parts() throws {
        let path = try path("parts.db")
        try LegacyFile.write(
            path,
            script: """
                PRAGMA page_size = 512; CREATE TABLE t(a); CREATE TABLE small(a); CREATE INDEX i ON t(a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
                INSERT INTO t(rowid, a) SELECT (i - 4000) * 7, printf('%0100d', i) FROM n;
                INSERT INTO small VALUES (1);
                """)
        let source = try #require(try FilePages(HeldBytes(contentsOf: path)))
        let claims = PageSet()
        let table = try TableParts(of: source, root: 2, claims: claims)
        #expect(table.parts.count > 20 && table.levels == 1)
        var rowids: [Int64] = []
        for part in table.parts {
            var cursor = TreeCursor(source, root: part.root, claims: claims)
            while let cell = try cursor.next() {
                #expect(cursor.level == table.levels)
                let bounds = try cursor.leafBounds().intersection(part.bounds)
                #expect(bounds.contains(cell.rowid))
                rowids.append(cell.rowid)
            }
        }
        #expect(rowids == (1...9_000).map { ($0 - 4_000) * 7 })
        let whole = PageSet()
        var cursor = TreeCursor(source, root: 2, claims: whole)
        while try cursor.next() != nil {}
        #expect(claims.count == whole.count)
        #expect(!claims.formUnion(whole))
        #expect(PageSet().formUnion(whole))
        let small = try TableParts(of: source, root: 3, claims: PageSet())
        #expect(small.parts.map(\.root) == [3] && small.levels == 0)
        #expect(throws: DamagedPage.self) { try TableParts(of: source, root: 4, claims: PageSet()) }
        for wanted in [Int64.min, -40_000, -27_993, -27_992, -1, 0, 6, 7, 34_992, 34_993, 34_999, 35_000, .max] {
            var cursor = TreeCursor(source, root: 2)
            try cursor.seek(after: wanted)
            #expect(try cursor.next()?.rowid == rowids.first { $0 > wanted })
        }
    }

    @Test("A page without cells below the root is damage, as it is for SQLite", arguments: ["leaf", "interior"])
    func withoutCells(kind: String) throws {
        let path = try path("\(kind).db")
        try LegacyFile.write(
            path,
            script: """
                PRAGMA page_size = 512; CREATE TABLE t(a);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) INSERT INTO t SELECT printf('%0300d', i) FROM n
                """)
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        let wanted: UInt8 = kind == "leaf" ? 13 : 5
        // Page 2 is the root; a later page has the wanted kind.
        let page = try #require((2..<bytes.count / 512).first { bytes[$0 * 512] == wanted })
        bytes.replaceSubrange((page * 512 + 3)..<(page * 512 + 5), with: [0, 0])
        try Data(bytes).write(to: URL(filePath: path))
        let source = try #require(try FilePages(HeldBytes(contentsOf: path)))
        var found: [DamagedPage] = []
        var cursor = TreeCursor(source, root: 2)
        while true {
            do {
                guard try cursor.next() != nil else { break }
            } catch let damage as DamagedPage {
                found.append(damage)
            }
        }
        #expect(found == [DamagedPage(UInt32(page + 1), .cellCount)])
        let connection = try Connection(path: path, mode: .readOnly)
        defer { connection.close() }
        #expect(throws: DatabaseError.self) { try connection.value(Int.self, "SELECT count(*) FROM t") }
    }
}
