/// The part of a payload that a cursor has not read yet.
package struct PayloadRest {
    /// The next overflow page.
    ///
    /// When no bytes are left, this is the next page that the last page of the chain names: 0 in an intact chain.
    package fileprivate(set) var page: UInt32
    /// The number of bytes left.
    package fileprivate(set) var length: Int
    /// Whether the pages must be claimed as they are read.
    fileprivate let isNew: Bool
}

extension TreeCursor {
    /// Returns the payload of a cell as one piece.
    ///
    /// The payload is valid until the next call, and needs extra memory only if it is on several pages.
    ///
    /// - Throws: ``DamagedPage``, and any error thrown by the source.
    @inlinable package mutating func payload(of cell: TreeCell) throws -> UnsafeRawBufferPointer {
        guard cell.local.count < cell.length else { return cell.local }
        return try assembled(cell)
    }

    @usableFromInline mutating func assembled(_ cell: TreeCell) throws -> UnsafeRawBufferPointer {
        var rest = try rest(of: cell)
        let whole = memory.payload(cell.length)
        whole.copyMemory(from: cell.local)
        var length = cell.local.count
        while let piece = try next(&rest) {
            UnsafeMutableRawBufferPointer(rebasing: whole[length...]).copyMemory(from: piece)
            length += piece.count
        }
        return UnsafeRawBufferPointer(whole)
    }

    /// Lends the payload of a cell to `body` piece by piece: the part on the cell's page, then the part on each
    /// overflow page.
    ///
    /// - Throws: ``DamagedPage``, and any error thrown by the source or by `body`.
    package mutating func forEachPiece(
        of cell: TreeCell, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try body(cell.local)
        guard cell.local.count < cell.length else { return }
        var rest = try rest(of: cell)
        while let piece = try next(&rest) { try body(piece) }
    }

    /// Returns the rest of a payload, after the part on the cell's page.
    ///
    /// - Throws: ``DamagedPage`` if the rest is longer than the pages of the database.
    package mutating func rest(of cell: TreeCell) throws(DamagedPage) -> PayloadRest {
        // No payload has more overflow pages than the database has pages.
        guard source.geometry.overflowPages(for: cell.length - cell.local.count) < Int(source.pageCount) else {
            throw DamagedPage(cell.page, .payloadLength)
        }
        let isNew = claimed != (cell.page, cell.index)
        claimed = (cell.page, cell.index)
        return PayloadRest(page: cell.overflow, length: cell.length - cell.local.count, isNew: isNew)
    }

    /// Returns the piece on the next overflow page, which is valid until the next call; `nil` at the end.
    ///
    /// - Throws: ``DamagedPage``, and any error thrown by the source.
    package mutating func next(_ rest: inout PayloadRest) throws -> UnsafeRawBufferPointer? {
        guard rest.length > 0 else { return nil }
        let page = rest.page
        guard page > 1, source.geometry.mayHold(page, of: source.pageCount) else { throw DamagedPage(page, .missing) }
        guard !rest.isNew || claims.claim(page, for: .overflow(root: root)) else {
            throw DamagedPage(page, .claimedTwice)
        }
        guard let bytes = try source.lend(page, memory.overflow()), bytes.count >= source.geometry.usableSize else {
            throw DamagedPage(page, .missing)
        }
        let piece = bytes.part(4, min(rest.length, source.geometry.usableSize - 4))
        rest.page = bytes.big32(0)
        rest.length -= piece.count
        return piece
    }
}
