internal import CipherSQLiteFormat

/// The pointer map of a damaged database with auto-vacuum, which tells a living page from a free one without any list.
struct LivingPointerMap {
    /// What the map tells of a page.
    enum Use: Equatable {
        case free
        /// A page of the b-tree with this root.
        case tree(root: UInt32)
        case overflow
    }

    private let map: PointerMap
    private let pageCount: UInt32

    /// Takes the map of a database that has one; if its header is lost, of one whose second page reads as a map.
    ///
    /// - Returns: `nil` where there is none.
    init?(_ source: some PageSource, _ header: FileHeader?) throws {
        map = PointerMap(source.geometry)
        pageCount = source.pageCount
        guard pageCount > 2 else { return nil }
        if let header {
            guard header.hasPointerMap else { return nil }
        } else {
            // The first table's root is the first page behind the map.
            guard try entry(of: 3, in: source)?.kind == .root else { return nil }
            for page in 4...max(4, min(pageCount, 12)) where !map.contains(page) && page <= pageCount {
                guard try entry(of: page, in: source) != nil else { return nil }
            }
        }
    }

    func claim(_ owners: PageOwners) {
        for page in 2...pageCount where map.contains(page) { owners.claim(page, .system) }
    }

    /// What the map tells of a page; `nil` if its part of the map, or one of a page above, is lost or contradicts
    /// itself.
    ///
    /// - Throws: What the source throws.
    func use(of page: UInt32, in source: some PageSource) throws -> Use? {
        var current = page
        // As many levels as SQLite has.
        for _ in 0..<20 {
            guard let entry = try entry(of: current, in: source) else { return nil }
            switch entry.kind {
            case .free: return current == page ? .free : nil
            case .root: return .tree(root: current)
            case .firstOverflow, .laterOverflow: return current == page ? .overflow : nil
            case .tree: current = entry.parent
            }
        }
        return nil
    }

    /// An entry that SQLite can have written.
    private func entry(of page: UInt32, in source: some PageSource) throws -> PointerMap.Entry? {
        guard let entry = try map.entry(of: page, in: source) else { return nil }
        let hasParent = entry.kind != .root && entry.kind != .free
        guard hasParent ? entry.parent != page && (1...pageCount).contains(entry.parent) : entry.parent == 0 else {
            return nil
        }
        return entry
    }
}
