/// The parts into which a table's b-tree is divided, each of which can be walked independently.
///
/// A part is the subtree of one of the lowest interior pages, with a few hundred leaves; a small table is one part. All
/// interior pages above the parts are read and checked: their rowids ascend and are within those of the pages above.
package struct TableParts {
    /// A subtree.
    package struct Part: Sendable {
        /// The root page of the subtree, which was not read.
        package let root: UInt32
        /// The bounds within which the rowids of the subtree must be.
        package let bounds: RowIDBounds
    }

    /// The parts in the order of their rowids.
    package private(set) var parts: [Part] = []
    /// The number of interior pages above the leaves of each part: 1, or 0 for a table of one page.
    package let levels: Int

    /// Divides a b-tree.
    ///
    /// - Parameter claims: Records the pages above the parts.
    /// - Throws: ``DamagedPage``, and any error thrown by the source.
    package init(of source: some PageSource, root: UInt32, claims: any PageClaims) throws {
        var reader = InteriorPages(source)
        // The leftmost branch shows the height of the b-tree; walking the parts shows whether the other branches have
        // the same height.
        var height = 0
        var child = root
        while let page = try reader.page(child, level: 0) {
            height += 1
            guard height < 20 else { throw DamagedPage(root, .depth) }
            child = try page.cellCount > 0 ? page.child(at: 0) : page.rightChild
        }
        levels = min(height, 1)
        try cut(Part(root: root, bounds: RowIDBounds()), at: 0, height, &reader, claims)
    }

    private mutating func cut<Source: PageSource>(
        _ part: Part, at level: Int, _ height: Int, _ reader: inout InteriorPages<Source>, _ claims: any PageClaims
    ) throws {
        guard level < height - 1 else { return parts.append(part) }
        guard claims.claim(part.root, for: .tree(root: part.root)) else { throw DamagedPage(part.root, .claimedTwice) }
        guard let page = try reader.page(part.root, level: level + 1) else { throw DamagedPage(part.root, .depth) }
        guard page.cellCount > 0 || page.number == 1 else { throw DamagedPage(part.root, .cellCount) }
        var above = part.bounds.above
        for index in 0...page.cellCount {
            let isLast = index == page.cellCount
            let upTo = try isLast ? part.bounds.upTo : page.cell(at: index).rowid
            if let above, let upTo, upTo <= above { throw DamagedPage(part.root, .keyOrder) }
            if let upTo, let most = part.bounds.upTo, upTo > most { throw DamagedPage(part.root, .keyOrder) }
            let child = try isLast ? page.rightChild : page.child(at: index)
            try cut(
                Part(root: child, bounds: RowIDBounds(above: above, upTo: upTo)), at: level + 1, height, &reader, claims
            )
            above = upTo
        }
    }
}

/// Reads pages of a table's b-tree, each level into its own memory.
private struct InteriorPages<Source: PageSource>: ~Copyable {
    private let source: Source
    private var memory: PageMemory

    init(_ source: Source) {
        self.source = source
        memory = PageMemory(source.geometry.pageSize)
    }

    /// Returns an interior page of a table; `nil` for a leaf.
    mutating func page(_ number: UInt32, level: Int) throws -> TreePage? {
        guard source.geometry.mayHold(number, of: source.pageCount),
            let bytes = try source.lend(number, memory.page(level))
        else { throw DamagedPage(number, .missing) }
        let page = try TreePage(bytes, number: number, source.geometry)
        guard page.kind.isTable else { throw DamagedPage(number, .noTreePage) }
        return page.kind.isLeaf ? nil : page
    }
}
