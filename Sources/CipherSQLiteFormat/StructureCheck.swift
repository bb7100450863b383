/// A check that the b-trees and the free list of a database do not contradict each other.
///
/// It makes the checks of SQLite's `quick_check` that concern several pages: each page is referenced once, the leaves
/// of a b-tree are at one depth, rowids ascend and are between those of the pages above, overflow chains end where
/// their payloads do, the free list has the length that the header states, and no page is unreferenced. It does not
/// examine the free space within a page, the tables of a module as the module does, or a pointer map.
/// Source: SQLite, "Database File Format", sections 1.5 and 1.6.
package struct StructureCheck<Source: PageSource> {
    @usableFromInline let source: Source
    @usableFromInline let claims = PageSet()
    /// Whether a virtual table is a fault: only its module knows whether its own tables are consistent.
    @usableFromInline let refusesModules: Bool

    package init(_ source: Source, refusesModules: Bool = true) {
        self.source = source
        self.refusesModules = refusesModules
    }

    /// Walks the whole database.
    ///
    /// - Parameter header: The header on page 1.
    /// - Throws: ``DamagedPage`` for the first fault; any error thrown by the source.
    @inlinable package func run(_ header: FileHeader) throws {
        if header.hasPointerMap { PointerMap(source.geometry).claimPages(of: source.pageCount, claims) }
        let schema = try SchemaEntry.all(in: source, claims: claims) { throw $0 }
        let freeList = try FreeList(in: source, first: header.firstFreePage, claims: claims) { throw $0 }
        guard freeList.trunks.count + freeList.leaves.count == Int(header.freePages) else {
            throw DamagedPage(1, .freeList)
        }
        for entry in schema {
            if refusesModules, entry.isVirtualTable { throw DamagedPage(1, .schemaEntry) }
            if entry.rootPage != 0 { try walk(entry) }
        }
        // No page may be unreferenced. If the log belongs to another copy of the database, unreferenced pages may be
        // the only sign.
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
        guard cursor.isOfTable == entry.isRowIDTable else { throw DamagedPage(entry.rootPage, .otherKind) }
    }
}

extension PageSource {
    /// Returns whether the b-trees and the free list do not contradict each other.
    package func isIntact() throws -> Bool {
        guard let header = try header() else { return false }
        do {
            try StructureCheck(self, refusesModules: false).run(header)
            return true
        } catch is DamagedPage {
            return false
        }
    }

    /// Returns whether a b-tree or the free list refers to a page after the last one, so that the database is longer
    /// than its number of pages states.
    ///
    /// Damaged pages are skipped.
    package func refersBeyondEnd() throws -> Bool {
        let claims = PageSet()
        var isBeyond = false
        func note(_ damage: DamagedPage) {
            if damage.reason == .missing, damage.page > pageCount { isBeyond = true }
        }
        let schema = try SchemaEntry.all(in: self, claims: claims, damage: note)
        if let first = try header()?.firstFreePage {
            _ = try FreeList(in: self, first: first, claims: claims, damage: note)
        }
        for entry in schema where entry.rootPage != 0 && !isBeyond {
            var cursor = TreeCursor(self, root: entry.rootPage, claims: claims)
            var isDone = false
            while !isDone {
                do {
                    guard let cell = try cursor.next() else {
                        isDone = true
                        continue
                    }
                    guard cell.overflow != 0 else { continue }
                    var rest = try cursor.rest(of: cell)
                    while try cursor.next(&rest) != nil {}
                } catch let damage as DamagedPage {
                    note(damage)
                }
            }
        }
        return isBeyond
    }
}

extension SchemaEntry {
    package var isTable: Bool { Self.ascii(type).elementsEqual("table".utf8) }

    @usableFromInline var isVirtualTable: Bool { isTable && rootPage == 0 }

    /// Whether the entry's b-tree is that of a table with rowids; a table WITHOUT ROWID has an index b-tree.
    @usableFromInline var isRowIDTable: Bool {
        guard isTable else { return false }
        // Only options such as WITHOUT ROWID follow the columns.
        let sql = Self.unquoted(sql.map(Self.ascii) ?? [])
        let options = sql.lastIndex(of: UInt8(ascii: ")")).map { sql[$0...] } ?? []
        let words = options.split { $0 < 48 }.map { $0.map { $0 | 32 } }
        return !(words.contains(Array("without".utf8)) && words.contains(Array("rowid".utf8)))
    }

    /// Returns SQL with a space in place of each comment and of each quoted name or text.
    private static func unquoted(_ sql: [UInt8]) -> [UInt8] {
        let quotes: [(opening: String, closing: String)] = [
            ("'", "'"), ("\"", "\""), ("`", "`"), ("[", "]"), ("--", "\n"), ("/*", "*/"),
        ]
        var (plain, rest): ([UInt8], ArraySlice<UInt8>) = ([], sql[...])
        while let next = rest.first {
            guard let quote = quotes.first(where: { rest.starts(with: $0.opening.utf8) }) else {
                plain.append(next)
                rest.removeFirst()
                continue
            }
            rest.removeFirst(quote.opening.utf8.count)
            rest = rest.firstRange(of: Array(quote.closing.utf8)).map { rest[$0.upperBound...] } ?? []
            plain.append(UInt8(ascii: " "))
        }
        return plain
    }

    /// Returns text with its ASCII characters as single bytes, in UTF-16 as well.
    private static func ascii(_ text: [UInt8]) -> [UInt8] { text.filter { $0 != 0 } }
}
