internal import CipherSQLiteFormat

/// What is known of the pages of a damaged database that are free.
struct FreePageEvidence {
    /// Pages that are free and may hold what they held before.
    var leaves: [UInt32] = []
    /// How many pages are free of which nothing tells where they are; `nil` if nothing tells how many.
    var unknown: Int?
    /// Whether every other page is living: as many free pages are known as there are.
    var isComplete: Bool { unknown == 0 }
}

extension ReadingRun {
    /// Takes the free pages out of what is unclaimed.
    ///
    /// A page that a trunk or the header names is free, whether or not it can be read: a file may be cut off, and what the
    /// list says of the rest is known all the same.
    mutating func claimFreePages() throws {
        guard let header = reading.header else {
            freePages.leaves = try findTrunks().leaves
            return
        }
        var isDamaged = false
        var missing: Set<UInt32> = []
        let last = UInt32(clamping: header.claimedPages ?? 0)
        let list = try FreeList(in: source, first: header.firstFreePage, claims: owners) { damage in
            if damage.page > 1, damage.page <= max(last, source.pageCount), damage.reason == .missing {
                missing.insert(damage.page)
            } else {
                isDamaged = true
            }
        }
        freePages.leaves = list.leaves
        missing.subtract(list.trunks + list.leaves)
        var known = list.trunks.count + list.leaves.count + missing.count
        // What a lost trunk led to, and the whole list where the header says that there is none.
        let found = try findTrunks()
        freePages.leaves += found.leaves
        known += found.trunks.subtracting(missing).count + found.leaves.count
        freePages.unknown = Int(header.freePages) - known
        findings.isFreeListDamaged = isDamaged || known != header.freePages
    }

    /// Looks for trunks of the free list that nothing leads to.
    ///
    /// A trunk is told by what it lists: pages that nothing else claims, none twice.
    private mutating func findTrunks() throws -> (trunks: Set<UInt32>, leaves: [UInt32]) {
        var (trunks, leaves): (Set<UInt32>, [UInt32]) = ([], [])
        guard source.pageCount > 1 else { return (trunks, leaves) }
        for number in 2...source.pageCount where owners.isUnclaimed(number) {
            guard let page = try HeldPage(number, in: source) else { continue }
            let count = Int(page.bytes.big32(4))
            guard count > 0, count <= source.geometry.usableSize / 4 - 2 else { continue }
            let listed = (0..<count).map { page.bytes.big32(8 + 4 * $0) }
            let next = page.bytes.big32(0)
            guard next == 0 || owners.isUnclaimed(next) || trunks.contains(next), Set(listed).count == count,
                listed.allSatisfy({ $0 > 1 && $0 != number && owners.isUnclaimed($0) })
            else { continue }
            owners.claim(number, .free)
            for leaf in listed { owners.claim(leaf, .free) }
            trunks.insert(number)
            leaves += listed
        }
        return (trunks, leaves)
    }

    /// Hands over what is left on free pages.
    mutating func readFreePages() throws {
        for page in freePages.leaves { try readFreePage(page) }
    }

    private mutating func readFreePage(_ number: UInt32) throws {
        try reading.checkpoint()
        guard let content = try content(number), content.tree.kind == .tableLeaf else { return }
        defer { content.keep() }
        for cell in content.cells { try hand(cell, content, .apart(.deleted, tables: [])) }
    }
}
