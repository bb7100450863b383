/// One page of a b-tree.
///
/// All bytes that it lends are valid only as long as the bytes from which it was created.
/// Source: SQLite, "Database File Format", section 1.6.
package struct TreePage {
    package enum Kind: UInt8, Sendable {
        case indexInterior = 2
        case tableInterior = 5
        case indexLeaf = 10
        case tableLeaf = 13

        @inlinable package var isLeaf: Bool { rawValue & 8 != 0 }
        @inlinable package var isTable: Bool { rawValue & 1 != 0 }
    }

    /// The number of the page, from 1.
    package let number: UInt32
    package let kind: Kind
    package let cellCount: Int
    /// The page without its reserved bytes.
    package let bytes: UnsafeRawBufferPointer
    @usableFromInline let geometry: PageGeometry
    /// The offset at which the pointers to the cells begin.
    @usableFromInline let pointers: Int

    /// Reads the header of a page.
    ///
    /// - Parameter page: The whole page.
    /// - Throws: ``DamagedPage`` if the page is not a b-tree page.
    @inlinable package init(_ page: UnsafeRawBufferPointer, number: UInt32, _ geometry: PageGeometry)
        throws(DamagedPage)
    {
        // On page 1, the file's header precedes the page's header.
        let header = number == 1 ? 100 : 0
        guard page.count >= geometry.pageSize, let kind = Kind(rawValue: page.byte(header)) else {
            throw DamagedPage(number, .noTreePage)
        }
        let pointers = header + (kind.isLeaf ? 8 : 12)
        let cellCount = page.big16(header + 3)
        guard pointers + 6 * cellCount <= geometry.usableSize else { throw DamagedPage(number, .cellCount) }
        self.number = number
        self.kind = kind
        self.cellCount = cellCount
        self.geometry = geometry
        self.pointers = pointers
        bytes = page.part(0, geometry.usableSize)
    }

    /// Creates a leaf without cells.
    @usableFromInline init(emptyWith geometry: PageGeometry) {
        number = 0
        kind = .tableLeaf
        cellCount = 0
        bytes = UnsafeRawBufferPointer(start: nil, count: 0)
        self.geometry = geometry
        pointers = 0
    }

    /// The child with the greatest keys on an interior page; 0 on a leaf.
    @inlinable package var rightChild: UInt32 { kind.isLeaf ? 0 : bytes.big32(pointers - 4) }

    /// Returns the offset at which a cell begins.
    ///
    /// A cell takes at least four bytes in SQLite, and an interior cell begins with its child pointer.
    @inlinable @inline(__always) func start(of index: Int) throws(DamagedPage) -> Int {
        guard index >= 0, index < cellCount else { throw DamagedPage(number, .cellBounds) }
        let start = bytes.big16(pointers + 2 * index)
        guard start >= pointers + 2 * cellCount, start + 4 <= bytes.count else {
            throw DamagedPage(number, .cellBounds)
        }
        return start
    }

    /// Returns the child with the keys up to the key of a cell, on an interior page.
    @inlinable package func child(at index: Int) throws(DamagedPage) -> UInt32 { bytes.big32(try start(of: index)) }

    /// Returns a cell by its position in key order.
    ///
    /// - Parameter index: The position of the cell, from 0 to below `cellCount`.
    /// - Throws: ``DamagedPage`` if the cell is not within the page.
    @inlinable @inline(__always) package func cell(at index: Int) throws(DamagedPage) -> TreeCell {
        var offset = try start(of: index)
        var (child, rowid, length) = (UInt32(0), Int64(0), 0)
        if !kind.isLeaf {
            child = bytes.big32(offset)
            offset += 4
        }
        if kind != .tableInterior {
            guard let number = bytes.varint(&offset) else { throw DamagedPage(self.number, .cellBounds) }
            // SQLite cannot store a longer payload.
            guard number <= 0x7fff_ffff else { throw DamagedPage(self.number, .payloadLength) }
            length = Int(number)
        }
        if kind.isTable {
            guard let number = bytes.varint(&offset) else { throw DamagedPage(self.number, .cellBounds) }
            rowid = Int64(bitPattern: number)
        }
        let local = geometry.localLength(of: length, inTable: kind.isTable)
        let end = offset + local
        guard end + (local < length ? 4 : 0) <= bytes.count else { throw DamagedPage(number, .cellBounds) }
        return TreeCell(
            page: number, index: index, child: child, rowid: rowid, length: length, local: bytes.part(offset, local),
            overflow: local < length ? bytes.big32(end) : 0)
    }

    /// Returns the range of a cell's bytes on the page.
    package func extent(of cell: TreeCell) -> Range<Int> {
        let start = bytes.big16(pointers + 2 * cell.index)
        var end = start + 4
        if let local = cell.local.baseAddress, let base = bytes.baseAddress {
            end = max(end, local - base + cell.local.count + (cell.local.count < cell.length ? 4 : 0))
        }
        return start..<end
    }

    /// Whether the cells, the free blocks and the fragments exactly fill the cell content area, as on every page that
    /// SQLite writes.
    ///
    /// If the header counts too few cells, for example, SQLite reads the page without an error, but does not find the
    /// other cells.
    /// Source: SQLite, "Database File Format", section 1.6, and `sqlite3BtreeIntegrityCheck` in its `btree.c`.
    package var fillsContentArea: Bool { fillingCellCount == cellCount }

    /// The page with as many cells as fill the cell content area, if the header counts fewer cells.
    package var filled: TreePage? {
        guard let count = fillingCellCount, count > cellCount else { return nil }
        return TreePage(self, cellCount: count)
    }

    private init(_ page: TreePage, cellCount: Int) {
        (number, kind, bytes, geometry, pointers) = (page.number, page.kind, page.bytes, page.geometry, page.pointers)
        self.cellCount = cellCount
    }

    /// The number of cells with which the page's cell content area contains nothing but cells, free blocks and
    /// fragments; `nil` if there is no such number.
    private var fillingCellCount: Int? {
        let header = pointers - (kind.isLeaf ? 8 : 12)
        let content = bytes.big16(header + 5) == 0 ? 65_536 : bytes.big16(header + 5)
        guard content <= bytes.count, content >= pointers + 2 * cellCount else { return nil }
        var rest = bytes.count - content - Int(bytes.byte(header + 7))
        var block = bytes.big16(header + 1)
        while block != 0 {
            guard block + 4 <= bytes.count else { return nil }
            let (next, size) = (bytes.big16(block), bytes.big16(block + 2))
            guard size >= 4, block + size <= bytes.count, next == 0 || next > block + size else { return nil }
            rest -= size
            block = next
        }
        // All pointers are before the cell content area.
        let page = TreePage(self, cellCount: (content - pointers) / 2)
        var count = 0
        while rest > 0 {
            guard let cell = try? page.cell(at: count) else { return nil }
            rest -= extent(of: cell).count
            count += 1
        }
        return rest == 0 ? count : nil
    }
}

/// A cell of a b-tree page: a row of a table, or a key of an index or of a table WITHOUT ROWID.
package struct TreeCell {
    /// The cell's page, and the cell's position on the page.
    package let page: UInt32
    package let index: Int
    /// The child with smaller keys, on an interior page; otherwise 0.
    package let child: UInt32
    /// The row's rowid; 0 in an index.
    package let rowid: Int64
    /// The length of the payload, in bytes.
    package let length: Int
    /// The part of the payload that is on the page.
    package let local: UnsafeRawBufferPointer
    /// The first overflow page; 0 if there is none.
    package let overflow: UInt32

    @inlinable init(
        page: UInt32, index: Int, child: UInt32, rowid: Int64, length: Int, local: UnsafeRawBufferPointer,
        overflow: UInt32
    ) {
        self.page = page
        self.index = index
        self.child = child
        self.rowid = rowid
        self.length = length
        self.local = local
        self.overflow = overflow
    }
}
