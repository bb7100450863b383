/// How large the pages of a database are, and how much of a payload they hold.
///
/// Source: SQLite, "Database File Format", sections 1.3.2, 1.3.4 and 1.6.
package struct PageGeometry: Equatable, Sendable {
    package let pageSize: Int
    /// The page without the bytes at its end that are reserved for extensions.
    package let usableSize: Int
    /// The longest payload of a table's leaf that needs no overflow page: X of the format's description.
    @usableFromInline let tableMost: Int
    /// The same of an index.
    @usableFromInline let indexMost: Int
    /// The least that is on the page of a payload with overflow pages: M.
    @usableFromInline let least: Int

    /// `nil` for sizes that SQLite does not know.
    package init?(pageSize: Int, reserved: Int) {
        guard pageSize.isPageSize, reserved >= 0, pageSize - reserved >= 480 else { return nil }
        self.pageSize = pageSize
        usableSize = pageSize - reserved
        tableMost = usableSize - 35
        indexMost = (usableSize - 12) * 64 / 255 - 23
        least = (usableSize - 12) * 32 / 255 - 23
    }

    /// How much of a payload is on the page.
    @inlinable package func localLength(of payload: Int, inTable: Bool) -> Int {
        let most = inTable ? tableMost : indexMost
        guard payload > most else { return payload }
        let fitting = least + (payload - least) % (usableSize - 4)
        return fitting <= most ? fitting : least
    }

    /// How many overflow pages hold so many bytes.
    @inlinable package func overflowPages(for length: Int) -> Int { (length + usableSize - 5) / (usableSize - 4) }

    /// Whether a database of so many pages may keep content on a page: SQLite keeps its locks on one, and nothing else.
    @inlinable package func mayHold(_ page: UInt32, of pageCount: UInt32) -> Bool {
        page >= 1 && page <= pageCount && page != Self.lockPage(pageSize)
    }

    /// The page of the bytes that SQLite locks.
    ///
    /// Source: "Database File Format", section 1.5.
    @inlinable package static func lockPage(_ pageSize: Int) -> UInt32 { UInt32(0x4000_0000 / pageSize + 1) }
}

extension Int {
    /// Whether SQLite knows pages of this size.
    package var isPageSize: Bool { (512...65536).contains(self) && self & (self - 1) == 0 }
}
