internal import CipherSQLiteFormat

/// The pages of one b-tree that its interior pages lead to, and the places where pages are missing.
///
/// Each page is checked before it is accepted as part of the b-tree: its kind, the range of rowids that its parent
/// assigns to it, and what the caller knows about the records. Thus a damaged child pointer takes no page away from
/// another b-tree.
struct TreeMap {
    /// A page, and the range of rowids that its parent assigns to it.
    struct Place {
        let page: UInt32
        /// The rowids on the page are greater than `above` and at most `upTo`; `nil` means no bound.
        let above: Int64?
        let upTo: Int64?

        func contains(_ rowid: Int64) -> Bool { above.map { rowid > $0 } != false && upTo.map { rowid <= $0 } != false }
    }

    /// The pages with rows or keys, in order: the leaves, and in an index b-tree also the interior pages.
    private(set) var pages: [Place] = []
    /// The places below which pages are missing, each with the page that is lost or no longer leads to them.
    private(set) var gaps: [Place] = []
    /// Leaves that cannot be read.
    ///
    /// No other page is missing in these places, unless the child pointer to the leaf is damaged.
    private(set) var lostLeaves: [Place] = []
    /// Pages that contain a contradiction.
    private(set) var damaged: [UInt32] = []

    /// Whether every page of the b-tree was found, and none is damaged.
    var isWhole: Bool { missing.isEmpty && damaged.isEmpty }

    /// All places where pages are missing.
    var missing: [Place] { gaps + lostLeaves }

    /// Creates the map of a b-tree that is known to have existed, but of which nothing else is known.
    init(lostRoot page: UInt32) { gaps = [Place(page: page, above: nil, upTo: nil)] }

    /// Records that the b-tree lacks some of its rows.
    ///
    /// If no gap accounts for these rows, one of the b-tree's pages was replaced by an earlier state of that page, or
    /// by a page of another b-tree.
    mutating func lackRows() {
        if missing.isEmpty { gaps = [Place(page: 0, above: nil, upTo: nil)] }
    }

    private struct Step {
        let page: UInt32
        let above: Int64?
        let upTo: Int64?
        let parent: UInt32
        let depth: Int

        var place: Place { Place(page: page, above: above, upTo: upTo) }
    }

    /// SQLite's limit on the depth of a b-tree.
    private static let mostLevels = 20

    /// Walks a b-tree.
    ///
    /// - Parameters:
    ///   - isTable: Whether the b-tree belongs to a table with rowids; otherwise it is an index b-tree.
    ///   - belongs: Returns whether a page with cells can be part of the b-tree, judging by its records.
    /// - Throws: Any error thrown by the source or by `belongs`.
    init(
        root: UInt32, isTable: Bool, in source: some PageSource, _ owners: PageOwners,
        belongs: (PageContent) throws -> Bool
    ) throws {
        var steps = [Step(page: root, above: nil, upTo: nil, parent: root, depth: 0)]
        var unreadable: [Step] = []
        // All leaves of a b-tree have the same depth.
        var leafDepth: Int?
        while let step = steps.popLast() {
            func lose(_ page: UInt32) { gaps.append(Place(page: page, above: step.above, upTo: step.upTo)) }
            guard source.geometry.mayHold(step.page, of: source.pageCount) else {
                // A number not far beyond the end is a page that was cut off from the file; any other number that no
                // page can have means that the parent was overwritten.
                if step.page > source.pageCount, step.page / 64 <= source.pageCount {
                    unreadable.append(step)
                } else {
                    lose(step.parent)
                }
                continue
            }
            let content = try HeldPage(step.page, in: source).flatMap { PageContent($0, source.geometry) }
            guard owners.isUnclaimed(step.page), step.depth < Self.mostLevels else {
                // A page of the other kind shows by itself that it is not part of this b-tree.
                if content?.tree.kind.isTable == isTable { owners.contest(step.page) }
                lose(step.parent)
                continue
            }
            guard let content else {
                unreadable.append(step)
                continue
            }
            guard content.tree.kind.isTable == isTable else {
                lose(step.page)
                continue
            }
            // Only a root may be empty; any other empty page is an old version.
            guard step.depth == 0 || !content.isWhole || !content.cells.isEmpty else {
                unreadable.append(step)
                continue
            }
            let isAtPlace = !isTable || Self.isAtPlace(content, step)
            guard try content.cells.isEmpty || isAtPlace && belongs(content) else {
                // The root has no parent that could be damaged.
                lose(step.parent)
                continue
            }
            owners.claim(step.page, .tree)
            if !content.isWhole { damaged.append(step.page) }
            if content.tree.kind.isLeaf || !isTable { pages.append(step.place) }
            guard !content.tree.kind.isLeaf else {
                if content.isWhole { leafDepth = step.depth }
                continue
            }
            // Cells that cannot be read or contradict other cells led to pages that are now missing.
            if !content.isWhole { gaps.append(Place(page: step.page, above: step.above, upTo: step.upTo)) }
            steps += Self.children(of: content, step).reversed()
        }
        for step in unreadable {
            if step.depth == leafDepth { lostLeaves.append(step.place) } else { gaps.append(step.place) }
        }
    }

    private static func isAtPlace(_ content: PageContent, _ step: Step) -> Bool {
        content.cells.contains { step.place.contains($0.rowid) }
    }

    private static func children(of content: PageContent, _ step: Step) -> [Step] {
        var children: [Step] = []
        var above = step.above
        let isTable = content.tree.kind.isTable
        for cell in content.cells {
            let upTo = isTable ? cell.rowid : nil
            children.append(
                Step(page: cell.child, above: above, upTo: upTo, parent: content.number, depth: step.depth + 1))
            above = upTo
        }
        // After missing cells, the range of the last child is not exactly known.
        children.append(
            Step(
                page: content.tree.rightChild, above: above, upTo: step.upTo, parent: content.number,
                depth: step.depth + 1))
        return children
    }
}
