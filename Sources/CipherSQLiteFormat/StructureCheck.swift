/// Whether the b-trees and the free list of a database contradict each other nowhere.
///
/// It checks across pages what SQLite's `quick_check` does: each page is led to once, the leaves of a tree are at one depth,
/// rowids ascend and are between those of the pages above, overflow chains end where their payloads do, and the free list is
/// as long as the header says. What is free within a page it does not look at.
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
        for entry in schema where entry.rootPage != 0 { try walk(entry) }
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
        // A table WITHOUT ROWID is an index's tree.
        guard entry.type.elementsEqual("index".utf8) != cursor.isOfTable || entry.isWithoutRowID else {
            throw DamagedPage(entry.rootPage, .noTreePage)
        }
    }
}

extension SchemaEntry {
    /// Whether the statement may be that of a table WITHOUT ROWID: the word is somewhere in it.
    @usableFromInline var isWithoutRowID: Bool {
        guard type.elementsEqual("table".utf8), let sql else { return false }
        let word = Array("without".utf8)
        let lowercase = sql.map { $0 >= 65 && $0 <= 90 ? $0 | 32 : $0 }
        return lowercase.indices.contains { lowercase[$0...].starts(with: word) }
    }
}
