/// The size of a database's pages, and how much of a payload they hold.
///
/// Source: SQLite, "Database File Format", sections 1.3.2, 1.3.4 and 1.6.
package struct PageGeometry: Equatable, Sendable {
    package let pageSize: Int
    /// The page size without the bytes at the end that are reserved for extensions.
    package let usableSize: Int
    /// The longest payload on a table's leaf that needs no overflow page: X in the description of the format.
    @usableFromInline let tableMost: Int
    /// The longest payload on an index page that needs no overflow page.
    @usableFromInline let indexMost: Int
    /// The minimum number of bytes that a payload with overflow pages has on the cell's page: M in the description.
    @usableFromInline let least: Int

    /// Computes the limits; returns `nil` for sizes that SQLite does not support.
    package init?(pageSize: Int, reserved: Int) {
        guard pageSize.isPageSize, reserved >= 0, pageSize - reserved >= 480 else { return nil }
        self.pageSize = pageSize
        usableSize = pageSize - reserved
        tableMost = usableSize - 35
        indexMost = (usableSize - 12) * 64 / 255 - 23
        least = (usableSize - 12) * 32 / 255 - 23
    }

    /// Returns how many bytes of a payload are on the cell's page.
    @inlinable @inline(__always) package func localLength(of payload: Int, inTable: Bool) -> Int {
        let most = inTable ? tableMost : indexMost
        guard payload > most else { return payload }
        let fitting = least + (payload - least) % (usableSize - 4)
        return fitting <= most ? fitting : least
    }

    /// Returns the number of overflow pages that are needed for the given number of bytes.
    @inlinable package func overflowPages(for length: Int) -> Int { (length + usableSize - 5) / (usableSize - 4) }

    /// Returns whether a page may hold content in a database with the given number of pages.
    ///
    /// SQLite uses one page only for its lock bytes.
    @inlinable package func mayHold(_ page: UInt32, of pageCount: UInt32) -> Bool {
        page >= 1 && page <= pageCount && page != Self.lockPage(pageSize)
    }

    /// Returns the page that contains SQLite's lock bytes.
    ///
    /// Source: "Database File Format", section 1.5.
    @inlinable package static func lockPage(_ pageSize: Int) -> UInt32 { UInt32(0x4000_0000 / pageSize + 1) }
}

extension Int {
    /// Whether SQLite supports pages of this size.
    package var isPageSize: Bool { (512...65536).contains(self) && self & (self - 1) == 0 }
}
