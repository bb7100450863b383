/// The free pages of a database.
///
/// Source: SQLite, "Database File Format", section 1.5.
package struct FreeList: Equatable, Sendable {
    /// The trunk pages, which list the other free pages, in list order.
    package private(set) var trunks: [UInt32] = []
    package private(set) var leaves: [UInt32] = []
    /// Whether a trunk page cannot be read, so that the rest of the list is unknown.
    package private(set) var isCut = false
    /// Whether a page in place of a trunk is neither one nor a page of a b-tree, or contains only zeros: it was
    /// overwritten or, if the pages are authentic, SQLite has used it again.
    package private(set) var isGarbled = false

    /// Follows the list.
    ///
    /// - Parameters:
    ///   - first: The first trunk page according to the file's header; 0 if the list is empty.
    ///   - claims: Records the pages that are reached.
    ///   - damage: Called for each damaged page that is skipped; it throws to end the walk.
    /// - Throws: Any error thrown by the source or by `damage`.
    package init(
        in source: some PageSource, first: UInt32, claims: any PageClaims = PageSet(),
        damage: (DamagedPage) throws -> Void
    ) throws {
        var memory = PageMemory(source.geometry.pageSize)
        var trunk = first
        while trunk != 0 {
            let bytes = try source.lend(trunk, memory.overflow())
            let page = bytes.flatMap { $0.count >= source.geometry.usableSize ? $0 : nil }
            let count = page.map { Int($0.big32(4)) } ?? 0
            let listsTooMany = count > source.geometry.usableSize / 4 - 2
            // SQLite has used the page again, and what led here is an old version.
            if let page, listsTooMany, PageShape(page).isTree {
                try damage(DamagedPage(trunk, .freeList))
                return
            }
            guard try Self.claim(trunk, .freeTrunk, source, claims, damage) else {
                if !source.geometry.mayHold(trunk, of: source.pageCount), !isGarbled { isCut = true }
                return
            }
            guard let page else {
                isCut = true
                try damage(DamagedPage(trunk, .missing))
                return
            }
            trunks.append(trunk)
            if listsTooMany || PageShape(page) == .empty { isGarbled = true }
            if listsTooMany {
                try damage(DamagedPage(trunk, .freeList))
            } else {
                for index in 0..<count {
                    let leaf = page.big32(8 + 4 * index)
                    if try Self.claim(leaf, .freeLeaf, source, claims, damage) { leaves.append(leaf) }
                }
            }
            trunk = page.big32(0)
        }
    }

    private static func claim(
        _ page: UInt32, _ use: PageUse, _ source: some PageSource, _ claims: any PageClaims,
        _ damage: (DamagedPage) throws -> Void
    ) throws -> Bool {
        guard page > 1, source.geometry.mayHold(page, of: source.pageCount) else {
            try damage(DamagedPage(page, .missing))
            return false
        }
        guard claims.claim(page, for: use) else {
            try damage(DamagedPage(page, .claimedTwice))
            return false
        }
        return true
    }
}
