internal import CipherSQLiteFormat

/// The pages of one b-tree as far as its interior pages lead to them, and where they do not.
///
/// Each page is held to its place before it is taken as the tree's: its kind, the range of rowids that its parent gives it,
/// and what the caller knows of the records. So a child pointer that was damaged takes no page away from another tree.
struct TreeMap {
    /// A page, and the rowids that its parent gives it.
    struct Place {
        let page: UInt32
        /// Above the one and up to the other; `nil` for no bound.
        let above: Int64?
        let upTo: Int64?

        func contains(_ rowid: Int64) -> Bool { above.map { rowid > $0 } != false && upTo.map { rowid <= $0 } != false }
    }

    /// The pages with rows or keys, in their order: the leaves, and in a tree of keys its interior pages too.
    private(set) var pages: [Place] = []
    /// Where pages below are missing, by the page that is lost or no longer leads to them.
    private(set) var gaps: [Place] = []
    /// Leaves that cannot be read, and so lack no page but themselves, unless the child pointer to one of them is damaged.
    private(set) var lostLeaves: [Place] = []
    /// Pages on which something contradicts the rest.
    private(set) var damaged: [UInt32] = []

    /// Whether every page of the tree was found, and none is damaged.
    var isWhole: Bool { missing.isEmpty && damaged.isEmpty }

    /// Where anything is missing.
    var missing: [Place] { gaps + lostLeaves }

    /// A tree of which nothing is known but that it was there.
    init(lostRoot page: UInt32) { gaps = [Place(page: page, above: nil, upTo: nil)] }

    /// Notes that the tree has not all of its rows: if nothing else says where they were, an earlier state of a page,
    /// or another tree's, is in the place of one.
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

    /// As many levels as SQLite has.
    private static let mostLevels = 20

    /// Walks a tree.
    ///
    /// - Parameters:
    ///   - isTable: Whether it is a table's with rowids, or one of keys.
    ///   - belongs: Whether a page with cells can be one of the tree, by its records.
    /// - Throws: What the source and `belongs` throw.
    init(
        root: UInt32, isTable: Bool, in source: some PageSource, _ owners: PageOwners,
        belongs: (PageContent) throws -> Bool
    ) throws {
        var steps = [Step(page: root, above: nil, upTo: nil, parent: root, depth: 0)]
        var unreadable: [Step] = []
        // All leaves of a tree have one depth.
        var leafDepth: Int?
        while let step = steps.popLast() {
            func lose(_ page: UInt32) { gaps.append(Place(page: page, above: step.above, upTo: step.upTo)) }
            guard source.geometry.mayHold(step.page, of: source.pageCount) else {
                // Beyond the end the file was cut off; what is no page at all was written over in the parent.
                if step.page > source.pageCount, step.page / 64 <= source.pageCount {
                    unreadable.append(step)
                } else {
                    lose(step.parent)
                }
                continue
            }
            guard owners.isUnclaimed(step.page), step.depth < Self.mostLevels else {
                lose(step.parent)
                continue
            }
            guard let page = try HeldPage(step.page, in: source), let content = PageContent(page, source.geometry)
            else {
                unreadable.append(step)
                continue
            }
            guard content.tree.kind.isTable == isTable else {
                lose(step.page)
                continue
            }
            let isAtPlace = !isTable || Self.isAtPlace(content, step)
            guard try content.cells.isEmpty || isAtPlace && belongs(content) else {
                // The root has no parent that could be wrong.
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
            // Cells that cannot be read, or contradict the others, led to pages that are missing now.
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
        // Behind cells that are missing the range of the last child is not known.
        children.append(
            Step(
                page: content.tree.rightChild, above: above, upTo: step.upTo, parent: content.number,
                depth: step.depth + 1))
        return children
    }
}
