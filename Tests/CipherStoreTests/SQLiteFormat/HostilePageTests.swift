internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Pages that were made or damaged to harm their reader.
@Suite struct HostilePageTests {
    /// Pages of 512 bytes, made by hand.
    private struct Pages {
        var bytes: [UInt8]

        init(_ count: Int) {
            bytes = [UInt8](repeating: 0, count: 512 * count)
            bytes.replaceSubrange(0..<24, with: Array("SQLite format 3\0".utf8) + [2, 0, 1, 1, 0, 64, 32, 32])
        }

        mutating func set(_ page: Int, _ offset: Int, _ content: [UInt8]) {
            bytes.replaceSubrange(
                ((page - 1) * 512 + offset)..<((page - 1) * 512 + offset + content.count), with: content)
        }

        /// Returns a page of a tree whose cells begin at the given offsets.
        mutating func tree(_ page: Int, _ kind: UInt8, cells: [Int], right: UInt8 = 0) {
            let header = page == 1 ? 100 : 0
            set(page, header, [kind, 0, 0, UInt8(cells.count >> 8), UInt8(cells.count & 255), 1, 0, 0])
            if kind & 8 == 0 { set(page, header + 8, [0, 0, 0, right]) }
            let pointers = header + (kind & 8 == 0 ? 12 : 8)
            set(page, pointers, cells.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] })
        }

        /// Returns what a walk finds, in order.
        func walk(root: UInt32) throws -> (cells: Int, damage: [DamagedPage]) {
            var cursor = TreeCursor(try #require(try FilePages(HeldBytes(bytes))), root: root)
            var (cells, damage): (Int, [DamagedPage]) = (0, [])
            while true {
                do {
                    guard let cell = try cursor.next() else { return (cells, damage) }
                    cells += 1
                    _ = try cursor.payload(of: cell)
                } catch let error as DamagedPage {
                    damage.append(error)
                }
            }
        }
    }

    @Test("Pages that refer to each other in a cycle are read once")
    func loops() throws {
        var pages = Pages(4)
        pages.set(2, 400, [0, 0, 0, 3, 1])
        pages.set(2, 410, [0, 0, 0, 2, 2])
        pages.tree(2, 5, cells: [400, 410], right: 3)
        pages.set(3, 400, [0, 0, 0, 2, 1])
        pages.tree(3, 5, cells: [400], right: 4)
        pages.set(4, 400, [2, 1, 1, 0])
        pages.tree(4, 13, cells: [400])
        let (cells, damage) = try pages.walk(root: 2)
        #expect(cells == 1)
        #expect(
            damage == [DamagedPage(2, .claimedTwice), DamagedPage(2, .claimedTwice), DamagedPage(3, .claimedTwice)])
    }

    @Test("A child page that is missing, of another kind or beyond the database affects only itself")
    func children() throws {
        var pages = Pages(5)
        for (index, child) in [3, 0, 9, 4, 5].enumerated() {
            pages.set(2, 400 + 10 * index, [0, 0, 0, UInt8(child), 1])
        }
        pages.tree(2, 5, cells: [400, 410, 420, 430, 440], right: 1)
        pages.set(3, 400, [2, 1, 1, 0])
        pages.tree(3, 13, cells: [400, 3, 511, 400])
        pages.tree(4, 10, cells: [])
        pages.tree(5, 77, cells: [])
        let (cells, damage) = try pages.walk(root: 2)
        #expect(cells == 2)
        #expect(
            damage == [
                DamagedPage(3, .cellBounds), DamagedPage(3, .cellBounds), DamagedPage(2, .missing),
                DamagedPage(9, .missing), DamagedPage(4, .noTreePage), DamagedPage(5, .noTreePage),
                DamagedPage(1, .noTreePage),
            ])
    }

    @Test("Cells with impossible lengths, offsets or counts are reported as damage")
    func cells() throws {
        func reason(_ cell: [UInt8], at offset: Int = 400, kind: UInt8 = 13, count: Int = 1) throws -> DamagedPage
            .Reason?
        {
            var pages = Pages(3)
            pages.set(2, offset, cell)
            pages.tree(2, kind, cells: [Int](repeating: offset, count: count))
            return try pages.walk(root: 2).damage.first?.reason
        }
        let nine = [UInt8](repeating: 0xff, count: 9)
        #expect(try reason(nine + [1]) == .payloadLength)
        #expect(try reason([0x87, 0xff, 0xff, 0xff, 0x7f, 1]) == .payloadLength)
        #expect(try reason([0x88, 0x80, 0x80, 0x80, 0x00, 1]) == .payloadLength)
        #expect(try reason([0x80, 0x80, 0x80, 0x80], at: 508) == .cellBounds)
        #expect(try reason([3, 0x80, 0x80, 0x80], at: 508) == .cellBounds)
        #expect(try reason([9, 1, 1, 1], at: 508) == .cellBounds)
        #expect(try reason([3, 1, 1, 1], at: 508) == .cellBounds)
        #expect(try reason([2, 1, 1, 0], at: 508) == nil)
        #expect(try reason([0x83, 0x5e, 1], at: 60) == .missing)
        #expect(try reason([0x83, 0x5e, 1], at: 100) == .missing)
        // 39 of 478 bytes are on the page, before the number of the next page.
        #expect(try reason([0x83, 0x5e, 1], at: 466) == .missing && reason([0x83, 0x5e, 1], at: 467) == .cellBounds)
        #expect(try reason([2, 1, 1, 0], at: 300, count: 84) == nil)
        #expect(try reason([2, 1, 1, 0], at: 300, count: 85) == .cellCount)
    }

    @Test("A payload ends at overflow pages that form a cycle, belong to the b-tree or lead nowhere")
    func chains() throws {
        // 1,400 bytes: a leaf contains at most 464, at least 39 stay on it, and each further page contains 508.
        func damage(_ next: [UInt8]) throws -> [DamagedPage] {
            var pages = Pages(5)
            let local = 39 + (1400 - 39) % 508
            pages.set(2, 100, [0x8a, 0x78, 1])
            pages.set(2, 103 + local, [0, 0, 0, next[0]])
            pages.tree(2, 13, cells: [100])
            for page in 3...5 { pages.set(page, 0, [0, 0, 0, next[page - 2]]) }
            return try pages.walk(root: 2).damage
        }
        #expect(try damage([3, 4, 0, 0]) == [])
        #expect(try damage([3, 3, 0, 0]) == [DamagedPage(3, .claimedTwice)])
        #expect(try damage([3, 2, 0, 0]) == [DamagedPage(2, .claimedTwice)])
        #expect(try damage([3, 0, 0, 0]) == [DamagedPage(0, .missing)])
        #expect(try damage([3, 1, 0, 0]) == [DamagedPage(1, .missing)])
        #expect(try damage([200, 0, 0, 0]) == [DamagedPage(200, .missing)])
    }

    @Test("Reading ends in a b-tree that only goes deeper, and in a cyclic free list")
    func depth() throws {
        var pages = Pages(40)
        for page in 2...39 {
            pages.set(page, 400, [0, 0, 0, UInt8(page + 1), 1])
            pages.tree(page, 5, cells: [400], right: 0)
        }
        #expect(try pages.walk(root: 2).damage.first == DamagedPage(22, .depth))
        #expect(try pages.walk(root: 0).damage.count == 1 && pages.walk(root: .max).damage.count == 1)

        pages = Pages(6)
        pages.set(2, 0, [0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 4])
        pages.set(3, 0, [0, 0, 0, 2, 0, 0, 0, 127])
        var damage: [DamagedPage] = []
        let list = try FreeList(in: #require(try FilePages(HeldBytes(pages.bytes))), first: 2) { damage.append($0) }
        #expect(list.trunks == [2, 3] && list.leaves == [4])
        #expect(damage == [DamagedPage(4, .claimedTwice), DamagedPage(3, .freeList), DamagedPage(2, .claimedTwice)])
    }

    @Test("An impossible page size or database size in a header is not trusted")
    func headers() throws {
        for (offset, value) in [(16, 0xff), (17, 0x01), (16, 0), (16, 3), (20, 33), (20, 255)] as [(Int, UInt8)] {
            var pages = Pages(3)
            pages.bytes[offset] = value
            #expect(try FilePages(HeldBytes(pages.bytes)) == nil, "\(offset)")
        }
        var pages = Pages(3)
        pages.set(1, 28, [0xff, 0xff, 0xff, 0xff])
        #expect(try FilePages(HeldBytes(pages.bytes))?.pageCount == 3)
        for count in [0, 1, 16, 99, 100, 511] { _ = try PageReading(database: Array(pages.bytes.prefix(count))) }
        var random = SeededRandom(seed: 3)
        let noise = (0..<5000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        #expect(try PageReading(database: Array(pages.bytes[..<100]) + noise).fault == nil)
        #expect(try PageReading(database: noise, log: noise, journal: noise).steps == 0)
    }

    @Test("No damage makes the reader trap or read without end", arguments: 0..<4)
    func damaged(part: UInt64) throws {
        let folder = try TemporaryFolder(inMemory: true)
        var seeds: [[UInt8]] = []
        for seed in (part * 8)..<(part * 8 + 8) {
            let database = GeneratedDatabase(seed: 1000 + seed)
            guard database.pageSize <= 4096 else { continue }
            try database.write(folder.path("\(seed).db"))
            let bytes = [UInt8](try Data(contentsOf: folder.url.appending(path: "\(seed).db")))
            guard bytes.count < 150_000 else { continue }
            #expect(try PageReading(database: bytes).damage == 0)
            seeds.append(bytes)
        }
        var random = SeededRandom(seed: part)
        var found = 0
        for _ in 0..<600 {
            var bytes = random.pick(seeds)
            for _ in 0...random.below(4) { damage(&bytes, &random) }
            let reading = try PageReading(database: bytes)
            #expect(reading.fault == nil)
            found += min(1, reading.damage)
        }
        // Most changes have an effect.
        #expect(found > 200)
    }

    /// Changes important parts of the format, such as headers of pages, pointers and lengths, or any byte.
    private func damage(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
        let pageSize = 256 * Int(bytes[16]) + Int(bytes[17])
        let page = random.below(bytes.count / pageSize) * pageSize
        let edges: [UInt8] = [0, 1, 2, 5, 10, 13, 0x7f, 0x80, 0xff, UInt8(truncatingIfNeeded: random.next())]
        switch random.below(6) {
        case 0: bytes[page + (page == 0 ? 100 : 0) + random.below(12)] = random.pick(edges)
        case 1: bytes[page + (page == 0 ? 108 : 8) + random.below(60)] = random.pick(edges)
        case 2:
            for offset in 0..<9 {
                bytes[min(bytes.count - 1, page + random.below(pageSize) + offset)] = random.pick(edges)
            }
        case 3:
            let other = random.below(bytes.count / pageSize) * pageSize
            for offset in 0..<pageSize where page + offset >= 100 { bytes[page + offset] = bytes[other + offset] }
        case 4 where bytes.count > 4 * pageSize: bytes.removeLast(random.below(2 * pageSize))
        default: bytes[random.below(bytes.count - 100) + 100] = random.pick(edges)
        }
    }
}
