internal import CipherSQLiteFormat

/// The pointer map of a damaged database with auto-vacuum.
///
/// It distinguishes live pages from free ones without the free list.
struct LivingPointerMap {
    /// The use of a page according to the map.
    enum Use: Equatable {
        case free
        /// A page of the b-tree with this root.
        ///
        /// The map may be an older version unless each parent was read and leads to the page below it.
        case tree(root: UInt32, isConfirmed: Bool)
        case overflow
    }

    private let map: PointerMap
    private let pageCount: UInt32

    /// Opens the pointer map if the header states that the database has one or, if the header is lost, if page 2 reads
    /// as one; returns `nil` if there is no pointer map.
    init?(_ source: some PageSource, _ header: FileHeader?) throws {
        map = PointerMap(source.geometry)
        pageCount = source.pageCount
        guard pageCount > 2 else { return nil }
        if let header {
            guard header.hasPointerMap else { return nil }
            // If the header is wrong, page 2 is one of the rows' pages.
            if let page = try HeldPage(2, in: source), let content = PageContent(page, source.geometry),
                content.isWhole, !content.cells.isEmpty
            {
                return nil
            }
        } else {
            // The root of the first table is the first page after the map.
            guard try entry(of: 3, in: source)?.kind == .root else { return nil }
            for page in 4...max(4, min(pageCount, 12)) where !map.contains(page) && page <= pageCount {
                guard try entry(of: page, in: source) != nil else { return nil }
            }
        }
    }

    func claim(_ owners: PageOwners) {
        for page in 2...pageCount where map.contains(page) { owners.claim(page, .system) }
    }

    /// Returns the use of a page that nothing leads to; `nil` if the page's entry, or that of a page above it, is lost or
    /// contradicts itself or the parent.
    ///
    /// - Parameter leads: Returns whether the first page leads to the second one; `nil` if that is not known. If it does not,
    ///   the entry is an old version.
    /// - Throws: Any error thrown by the source or by `leads`.
    func use(
        of page: UInt32, in source: some PageSource, _ leads: (UInt32, UInt32) throws -> Bool?
    ) throws -> Use? {
        var (current, isConfirmed) = (page, true)
        // SQLite's limit on the depth of a b-tree.
        for _ in 0..<20 {
            guard let entry = try entry(of: current, in: source) else { return nil }
            switch entry.kind {
            case .free: return current == page ? .free : nil
            case .root: return .tree(root: current, isConfirmed: isConfirmed)
            case .firstOverflow, .laterOverflow: return current == page ? .overflow : nil
            case .tree:
                let leadsHere = try leads(entry.parent, current)
                guard leadsHere != false else { return nil }
                if leadsHere == nil { isConfirmed = false }
                current = entry.parent
            }
        }
        return nil
    }

    /// Returns the entry of a page; `nil` if SQLite cannot have written it.
    private func entry(of page: UInt32, in source: some PageSource) throws -> PointerMap.Entry? {
        guard let entry = try map.entry(of: page, in: source) else { return nil }
        let hasParent = entry.kind != .root && entry.kind != .free
        guard hasParent ? entry.parent != page && (1...pageCount).contains(entry.parent) : entry.parent == 0 else {
            return nil
        }
        return entry
    }
}
