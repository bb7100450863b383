/// The map in which a database with auto-vacuum records the type and the parent of each page.
///
/// Source: SQLite, "Database File Format", section 1.8.
package struct PointerMap: Sendable {
    package enum Kind: UInt8, Sendable {
        case root = 1
        case free = 2
        /// The first overflow page of a cell; the parent is the cell's page.
        case firstOverflow = 3
        /// Any other overflow page; the parent is the preceding overflow page.
        case laterOverflow = 4
        /// A page of a b-tree; the parent is the page above.
        case tree = 5
    }

    package struct Entry: Equatable, Sendable {
        package let kind: Kind
        package let parent: UInt32
    }

    private let geometry: PageGeometry

    package init(_ geometry: PageGeometry) { self.geometry = geometry }

    /// Returns the map page with the entry of a page; `nil` for page 1, which has no entry.
    package func mapPage(of page: UInt32) -> UInt32? {
        guard page > 1 else { return nil }
        let pagesInPart = UInt32(geometry.usableSize / 5 + 1)
        let map = (page - 2) / pagesInPart * pagesInPart + 2
        return map == PageGeometry.lockPage(geometry.pageSize) ? map + 1 : map
    }

    /// Records all pages of the map in a database with the given number of pages.
    package func claimPages(of pageCount: UInt32, _ claims: any PageClaims) {
        var page: UInt32 = 2
        while page <= pageCount {
            if let part = mapPage(of: page), part <= pageCount { _ = claims.claim(part, for: .pointerMap) }
            let (next, overflow) = page.addingReportingOverflow(UInt32(geometry.usableSize / 5 + 1))
            guard !overflow else { return }
            page = next
        }
    }

    /// Returns whether a page belongs to the map.
    package func contains(_ page: UInt32) -> Bool { mapPage(of: page) == page }

    /// Returns the map's entry for a page; `nil` if SQLite would not write such an entry.
    ///
    /// - Throws: Any error thrown by the source.
    package func entry(of page: UInt32, in source: some PageSource) throws -> Entry? {
        guard let map = mapPage(of: page), page > map, page <= source.pageCount else { return nil }
        var memory = PageMemory(geometry.pageSize)
        let offset = 5 * Int(page - map - 1)
        guard let bytes = try source.lend(map, memory.overflow()), offset + 5 <= min(bytes.count, geometry.usableSize),
            let kind = Kind(rawValue: bytes.byte(offset))
        else { return nil }
        return Entry(kind: kind, parent: bytes.big32(offset + 1))
    }
}
