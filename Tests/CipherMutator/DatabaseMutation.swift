/// Damage to the pages of a database file, at places that matter in its format.
///
/// Source: SQLite, "Database File Format", section 1.
struct DatabaseMutation {
    var bytes: [UInt8]

    private var pageSize: Int { bytes.big16(16) == 1 ? 65536 : max(512, bytes.big16(16)) }
    private var pages: Int { bytes.count / pageSize }

    /// Damages the file once, in one of many ways.
    mutating func mutate(_ random: inout Random) {
        guard bytes.count >= 512, pages > 0 else { return bytes.scramble(&random) }
        switch random.below(12) {
        case 0: mutateHeader(&random)
        case 1, 2: mutatePageHeader(&random)
        case 3, 4: mutateCellPointer(&random)
        case 5, 6: mutateCell(&random)
        case 7: aimAtPage(&random)
        case 8: movePage(&random)
        case 9: mutateLength(&random)
        case 10: mutateText(&random)
        default: bytes.scramble(&random)
        }
    }

    /// Replaces bytes in the schema's names, everywhere in the file, so that it stays consistent.
    ///
    /// The new bytes need not be UTF-8.
    ///
    /// SQLite treats every byte from 0x80 on as a letter, so a name without quotes remains a name. Several names of one
    /// length often become equal when a program repairs their text.
    mutating func rename(_ random: inout Random) {
        for word in ["item", "bare", "body", "pair", "long", "seen", "what", "plain", "search"] where random.oneIn(3) {
            let name = word.utf8.map { _ in random.byte() | 0x80 }
            let old = Array(word.utf8)
            var place = 0
            while place + old.count <= bytes.count {
                if bytes[place] == old[0], bytes[place..<(place + old.count)].elementsEqual(old) {
                    bytes.replaceSubrange(place..<(place + old.count), with: name)
                }
                place += 1
            }
        }
    }

    private mutating func mutateHeader(_ random: inout Random) {
        let fields =
            [(16, 2), (18, 1), (19, 1), (20, 1), (21, 1), (22, 1), (23, 1)]
            + stride(from: 24, to: 100, by: 4).map { ($0, 4) }
        let (offset, width) = random.pick(fields)
        switch width {
        case 1: bytes[offset] = random.oneIn(2) ? random.byte() : UInt8(random.below(5))
        case 2: bytes.setBig16(random.pick([1, 0, 256, 512, 1024, 4096, 32768, 65535, 777]), at: offset)
        default: bytes.setBig32(random.edge(), at: offset)
        }
        // SQLite uses the page count only if the two counters agree.
        if offset == 28, random.oneIn(2) { bytes.setBig32(bytes.big32(24), at: 92) }
    }

    /// Returns where a page begins, and where its b-tree header begins.
    private func page(_ random: inout Random) -> (start: Int, header: Int) {
        let number = random.oneIn(4) ? 0 : random.below(pages)
        return (number * pageSize, number * pageSize + (number == 0 ? 100 : 0))
    }

    private func isLeaf(_ header: Int) -> Bool { bytes[header] & 8 != 0 }

    private mutating func mutatePageHeader(_ random: inout Random) {
        let header = page(&random).header
        switch random.below(6) {
        case 0: bytes[header] = random.pick([0, 2, 5, 10, 13, random.byte()])
        case 1: bytes.setBig16(Int(random.edge() & 0xffff), at: header + 1)
        case 2: bytes.setBig16(Int(random.edge() & 0xffff), at: header + 3)
        case 3: bytes.setBig16(Int(random.edge() & 0xffff), at: header + 5)
        case 4: bytes[header + 7] = random.byte()
        default: bytes.setBig32(pageNumber(&random), at: header + 8)
        }
    }

    private func pageNumber(_ random: inout Random) -> UInt32 {
        random.oneIn(4) ? random.edge() : UInt32(1 + random.below(pages))
    }

    /// Returns the offset in the file of one of a page's cell pointers.
    private func cellPointer(_ random: inout Random) -> (start: Int, offset: Int)? {
        let (start, header) = page(&random)
        let cells = min(bytes.big16(header + 3), pageSize / 4)
        guard cells > 0 else { return nil }
        return (start, header + (isLeaf(header) ? 8 : 12) + 2 * random.below(cells))
    }

    private mutating func mutateCellPointer(_ random: inout Random) {
        guard let (_, offset) = cellPointer(&random), let (_, other) = cellPointer(&random) else { return }
        bytes.setBig16(random.oneIn(2) ? bytes.big16(other) : Int(random.edge() & 0xffff), at: offset)
    }

    /// Damages the child, the lengths, the rowid or the types at a cell's beginning, or the overflow page at its end.
    private mutating func mutateCell(_ random: inout Random) {
        guard let (start, offset) = cellPointer(&random) else { return }
        let cell = start + bytes.big16(offset)
        guard cell + 16 < bytes.count else { return }
        switch random.below(4) {
        case 0: bytes.setBig32(pageNumber(&random), at: cell)
        case 1: for index in 0..<(1 + random.below(9)) { bytes[cell + index] = random.byte() | 0x80 }
        case 2: bytes[cell + random.below(16)] = random.byte()
        default:
            // A cell with an overflow chain fills its space, and ends with four bytes that are a page number.
            bytes.setBig32(pageNumber(&random), at: cell + random.below(max(1, min(pageSize, bytes.count - cell - 4))))
        }
    }

    /// Damages free-list trunks, overflow pages and right children, which begin a page or follow its header.
    ///
    /// This creates loops.
    private mutating func aimAtPage(_ random: inout Random) {
        let (start, header) = page(&random)
        bytes.setBig32(pageNumber(&random), at: random.pick([start == 0 ? 32 : start, start + 4, header + 8]))
    }

    private mutating func movePage(_ random: inout Random) {
        let (from, to) = (random.below(pages) * pageSize, random.below(pages) * pageSize)
        if random.oneIn(4) {
            for index in to..<(to + pageSize) { bytes[index] = 0 }
        } else if random.oneIn(2) {
            bytes.replaceSubrange(to..<(to + pageSize), with: Array(bytes[from..<(from + pageSize)]))
        } else {
            for index in 0..<pageSize { bytes.swapAt(from + index, to + index) }
        }
    }

    private mutating func mutateLength(_ random: inout Random) {
        switch random.below(4) {
        case 0: bytes.removeLast(min(bytes.count - 1, pageSize * (1 + random.below(3))))
        case 1: bytes.removeLast(1 + random.below(min(bytes.count - 1, 600)))
        case 2: bytes += [UInt8](repeating: random.oneIn(2) ? 0 : random.byte(), count: 1 + random.below(3 * pageSize))
        default: bytes.removeLast(bytes.count - random.below(200))
        }
    }

    /// Damages words in the schema's text that have a meaning there.
    private mutating func mutateText(_ random: inout Random) {
        let words = ["TABLE", "INDEX", "VIEW  ", "UNIQUE", "WITHOUT", "PRIMARY", "COLLATE", "fts4", "DESC", "INTEGER"]
        let word = Array(random.pick(words).utf8)
        let (from, length) = (Array(random.pick(words).utf8), min(bytes.count, 3 * pageSize))
        let starts = (0..<(length - 8)).filter { bytes[$0..<($0 + from.count)].elementsEqual(from) }
        guard !starts.isEmpty else { return }
        let start = random.pick(starts)
        for (index, byte) in word.prefix(from.count).enumerated() { bytes[start + index] = byte }
    }
}
