package import CipherSQLiteFormat

/// The pages of a damaged file; a page in its log or journal replaces the one in the file.
///
/// The page count is the number of pages that the existing bytes can hold. A larger count claimed by a header, a log or
/// a journal is not trusted, and pages that a header omits are included nevertheless.
package struct DamagedPages<Database: ByteSource, Sidecar: ByteSource>: PageSource {
    package let geometry: PageGeometry
    package let pageCount: UInt32
    private let database: Database
    private let versions: PageVersions?
    private let sidecar: Sidecar?

    package init(_ database: Database, _ geometry: PageGeometry, versions: PageVersions?, in sidecar: Sidecar?) {
        self.database = database
        self.geometry = geometry
        self.versions = versions
        self.sidecar = sidecar
        let whole = UInt32(clamping: database.size / Int64(geometry.pageSize))
        // A journal records the size to restore; a log records the current size.
        pageCount =
            versions.map {
                max(
                    min(whole, $0.pageCount),
                    $0.offsets.keys.filter { [claimed = $0.pageCount] in $0 <= claimed }.max() ?? 0)
            } ?? whole
    }

    package func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer? {
        guard page >= 1, page <= pageCount else { return nil }
        if let offset = versions?.offsets[page], let sidecar {
            return try sidecar.lend(at: offset, count: geometry.pageSize, scratch)
        }
        return try database.lend(at: (Int64(page) - 1) * Int64(geometry.pageSize), count: geometry.pageSize, scratch)
    }
}

extension PageGeometry {
    /// Returns the candidate geometry with which the most pages are undamaged; `nil` if no page is undamaged with any
    /// candidate.
    ///
    /// It examines pages 2 to 4,096 at most.
    package static func guess(among sizes: [PageGeometry], in source: some PageSource) throws -> PageGeometry? {
        var counts = [Int](repeating: 0, count: sizes.count)
        guard source.pageCount > 1 else { return nil }
        for number in 2...min(source.pageCount, 4_096) {
            guard let page = try HeldPage(number, in: source) else { continue }
            for (index, geometry) in sizes.enumerated() where PageContent.isWhole(page.bytes, geometry) {
                counts[index] += 1
            }
        }
        guard let most = counts.max(), most > 0 else { return nil }
        return counts.firstIndex(of: most).map { sizes[$0] }
    }

    /// Returns the page size with which the most pages of a file are well-formed b-tree pages, for a file whose header
    /// does not contain it; `nil` if the file does not have the structure of a plaintext database.
    ///
    /// With a size greater than the true one, only some pages begin where expected; with a smaller size, most pages
    /// claim content beyond their end. A few readable pages among others are not the structure of a database: at least
    /// half of the pages with content must be b-tree pages or begin, as overflow pages do, with the number of a page.
    /// The method examines at most 4 MiB for each page size, spread evenly over the file.
    package static func guess(_ database: some ByteSource) throws -> PageGeometry? {
        var best: (trees: Int, isDatabase: Bool, geometry: PageGeometry)?
        for shift in 9...16 {
            guard let geometry = PageGeometry(pageSize: 1 << shift, reserved: 0),
                database.size >= Int64(geometry.pageSize)
            else { continue }
            let found = try PageShapeCounts(database, geometry)
            if found.trees > best?.trees ?? 0 {
                best = (found.trees, found.trees + found.known >= found.unknown, geometry)
            }
        }
        return best.flatMap { $0.isDatabase ? $0.geometry : nil }
    }
}

/// The number of pages of each shape in a file, after page 1 and among at most 4 MiB of pages.
package struct PageShapeCounts {
    /// Well-formed b-tree pages.
    fileprivate var trees = 0
    /// Other pages that a plaintext database may have.
    fileprivate var known = 0
    /// Pages that a plaintext database does not have, unless they are damaged.
    package private(set) var unknown = 0

    /// Whether most pages are those of a plaintext database.
    package var areMostlyKnown: Bool { trees + known > unknown }

    package init(_ database: some ByteSource, _ geometry: PageGeometry) throws {
        let size = geometry.pageSize
        let pages = database.size / Int64(size)
        let looked = min(pages, Int64(4 << 20) / Int64(size))
        for step in 0..<looked {
            let number = step * pages / looked
            guard number > 0, let page = try database.read(at: number * Int64(size), count: size) else { continue }
            page.withUnsafeBytes { page in
                switch PageShape(page) {
                case .empty: break
                case .tree where PageContent.isWhole(page, geometry): trees += 1
                case .tree: known += 1
                case .other where Int64(page.big32(0)) <= pages: known += 1
                case .other: unknown += 1
                }
            }
        }
    }
}
