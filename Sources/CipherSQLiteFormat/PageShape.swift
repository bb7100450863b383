/// The kind of a page, judged by its bytes alone.
package enum PageShape: Equatable, Sendable {
    /// The page contains only zeros.
    case empty
    /// A page of a b-tree.
    ///
    /// Random bytes look like such a page with a probability that increases with the page size: less than 1 in 10¹¹
    /// for 4,096 bytes, less than 1 in 10⁹ for 16,384 bytes, and about 1 in 4 million for 65,536 bytes.
    case tree(TreePage.Kind)
    /// An overflow page, a page of a list, or something that is not a page.
    case other

    package init(_ page: [UInt8]) { self = page.withUnsafeBytes(PageShape.init) }

    package var isTree: Bool { if case .tree = self { true } else { false } }

    /// Determines the kind of a page.
    ///
    /// - Parameter page: A whole page, other than page 1.
    package init(_ page: UnsafeRawBufferPointer) {
        if let kind = Self.wellFormedTree(page) {
            self = .tree(kind)
        } else {
            self = page.allSatisfy { $0 == 0 } ? .empty : .other
        }
    }

    /// Returns the kind of a page whose header and cell pointers agree with each other; `nil` for any other page.
    ///
    /// Source: SQLite, "Database File Format", section 1.6.
    private static func wellFormedTree(_ page: UnsafeRawBufferPointer) -> TreePage.Kind? {
        guard page.count >= 512, let kind = TreePage.Kind(rawValue: page.byte(0)) else { return nil }
        let cells = page.big16(3)
        let content = page.big16(5) == 0 ? 65536 : page.big16(5)
        let pointers = kind.isLeaf ? 8 : 12
        // The last row of the table was deleted, so the page has only its header.
        if cells == 0 {
            let isEmptyLeaf = kind.isLeaf && page.byte(7) == 0 && page.big16(1) == 0
            return isEmptyLeaf && (page.count - 255...page.count).contains(content) ? kind : nil
        }
        guard page.byte(7) <= 60, pointers + 2 * cells <= content, content < page.count, page.big16(1) < page.count,
            (0..<cells).allSatisfy({ (content..<page.count).contains(page.big16(pointers + 2 * $0)) })
        else { return nil }
        return kind
    }
}
