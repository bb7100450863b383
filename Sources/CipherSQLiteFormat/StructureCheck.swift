/// Whether the b-trees and the free list of a database contradict each other nowhere.
///
/// It checks across pages what SQLite's `quick_check` does: each page is led to once, the leaves of a tree are at one depth,
/// rowids ascend and are between those of the pages above, overflow chains end where their payloads do, the free list is as
/// long as the header says, and no page is left over. What is free within a page it does not look at; a database with virtual
/// tables or a pointer map is not for it.
/// Source: SQLite, "Database File Format", sections 1.5 and 1.6.
package struct StructureCheck<Source: PageSource> {
    @usableFromInline let source: Source
    @usableFromInline let claims = PageSet()

    package init(_ source: Source) { self.source = source }

    /// Walks the whole database.
    ///
    /// - Parameter header: That of page 1.
    /// - Throws: ``DamagedPage`` for the first fault; what the source throws.
    @inlinable package func run(_ header: FileHeader) throws {
        let schema = try SchemaEntry.all(in: source, claims: claims) { throw $0 }
        let freeList = try FreeList(in: source, first: header.firstFreePage, claims: claims) { throw $0 }
        guard freeList.trunks.count + freeList.leaves.count == Int(header.freePages) else {
            throw DamagedPage(1, .freeList)
        }
        for entry in schema {
            // Whether the tables of a module fit together, the module knows.
            if entry.isVirtualTable { throw DamagedPage(1, .schemaEntry) }
            if entry.rootPage != 0 { try walk(entry) }
        }
        // Pages that nothing leads to: of a log of another copy they may be all that tells.
        let lockPages = source.pageCount >= PageGeometry.lockPage(source.geometry.pageSize) ? 1 : 0
        guard claims.count == Int(source.pageCount) - lockPages else { throw DamagedPage(1, .missing) }
    }

    @inlinable func walk(_ entry: SchemaEntry) throws {
        var cursor = TreeCursor(source, root: entry.rootPage, claims: claims)
        var leaf: (page: UInt32, level: Int, bounds: RowIDBounds)?
        var last: Int64?
        while let cell = try cursor.next() {
            let isTable = cursor.isOfTable == true
            if isTable || cell.child == 0, leaf?.page != cell.page {
                guard leaf.map({ $0.level == cursor.level }) ?? true else { throw DamagedPage(cell.page, .depth) }
                leaf = (cell.page, cursor.level, isTable ? try cursor.leafBounds() : RowIDBounds())
            }
            if isTable {
                guard last.map({ cell.rowid > $0 }) ?? true, leaf?.bounds.contains(cell.rowid) == true else {
                    throw DamagedPage(cell.page, .keyOrder)
                }
                last = cell.rowid
            }
            guard cell.overflow != 0 else { continue }
            var rest = try cursor.rest(of: cell)
            while try cursor.next(&rest) != nil {}
            guard rest.page == 0 else { throw DamagedPage(cell.page, .payloadLength) }
        }
        guard cursor.isOfTable == entry.isRowIDTable else {
            throw DamagedPage(entry.rootPage, .noTreePage)
        }
    }
}

extension SchemaEntry {
    @usableFromInline var isVirtualTable: Bool { type.elementsEqual("table".utf8) && rootPage == 0 }

    /// Whether its tree is that of a table with rowids; one WITHOUT ROWID is an index's tree.
    @usableFromInline var isRowIDTable: Bool {
        guard type.elementsEqual("table".utf8) else { return false }
        // Behind the columns there are only such options.
        let options = sql.flatMap { sql in sql.lastIndex(of: UInt8(ascii: ")")).map { sql[$0...] } } ?? []
        let words = options.split { $0 < 48 }.map { $0.map { $0 | 32 } }
        return !(words.contains(Array("without".utf8)) && words.contains(Array("rowid".utf8)))
    }
}
