internal import CipherSQLiteFormat

/// The evidence about the free pages of a damaged database.
struct FreePageEvidence {
    /// Free pages that may still hold their former content.
    var leaves: [UInt32] = []
    /// The number of free pages whose location is unknown; `nil` if that number is unknown.
    var unknown: Int?
    /// The pages that no list names but that can only be free.
    var freed: Set<UInt32> = []
    /// The last page that the header counts.
    var last = UInt32.max

    /// Returns whether every free page is known, and a page is not one of them.
    func showInUse(_ page: UInt32) -> Bool { unknown == 0 && !freed.contains(page) && page <= last }
}

extension ReadingRun {
    /// Claims the free pages.
    ///
    /// A page that a trunk or the header names is free, whether or not it can be read: if the file was truncated, the
    /// list still shows which of the missing pages were free.
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
        freePages.leaves += list.leaves
        // A page that a b-tree leads to is not free, even if it cannot be read.
        let trees = tables + indexes.flatMap { $0.compactMap(\.self) }
        let lost = Set(trees.flatMap { $0.missing.map(\.page) })
        if !lost.isDisjoint(with: list.trunks + list.leaves) { isDamaged = true }
        missing.subtract(list.trunks + list.leaves)
        claimPages(after: last)
        var known = list.trunks.count + list.leaves.count + missing.count
        // The search adds the pages that a lost trunk led to, and the whole list if the header claims that it is empty.
        let found = try findTrunks()
        freePages.leaves += found.leaves
        known += found.trunks.subtracting(missing).count + found.leaves.count
        freePages.unknown = Int(header.freePages) - known
        findings.isFreeListDamaged = isDamaged || known != header.freePages
        // The header is older than the list, or a trunk is older than the header.
        let mayBeLost = list.isCut || list.isGarbled && !reading.believesZeros
        if findings.isFreeListDamaged, !mayBeLost { findings.contradictsHeader = true }
    }

    /// Claims the pages after those that the header counts, which are old ones: a killed VACUUM has not cut them off yet,
    /// or the file grows in chunks.
    ///
    /// If anything leads to one of these pages, the header contradicts it.
    private mutating func claimPages(after last: UInt32) {
        guard last > 0 else { return findings.isPageCountKnown = false }
        guard last < source.pageCount else { return }
        freePages.last = last
        let rest = last + 1...source.pageCount
        guard rest.allSatisfy({ [owners] in [.nobody, .system].contains(owners[$0]) }),
            !tables.contains(where: { $0.missing.contains { $0.page > last } })
        else {
            findings.contradictsHeader = true
            return findings.isPageCountKnown = false
        }
        for page in rest where owners.claim(page, .free) { freePages.leaves.append(page) }
    }

    /// Finds free-list trunks that nothing leads to.
    ///
    /// A trunk is recognized by the pages that it lists: nothing else claims these pages, and none occurs twice.
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

    /// Passes the rows that are left on free pages to the sink.
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
