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
    /// - Parameters:
    ///   - header: The header on page 1.
    ///   - damage: Called for each fault; by default, the first fault ends the walk.
    /// - Throws: ``DamagedPage`` for the first fault, unless `damage` returns; any error thrown by the source.
    @inlinable package func run(
        _ header: FileHeader, damage: (DamagedPage) throws -> Void = { throw $0 }
    ) throws {
        if header.hasPointerMap { PointerMap(source.geometry).claimPages(of: source.pageCount, claims) }
        let schema = try SchemaEntry.all(in: source, claims: claims, damage: damage)
        let freeList = try FreeList(in: source, first: header.firstFreePage, claims: claims, damage: damage)
        if freeList.trunks.count + freeList.leaves.count != Int(header.freePages) {
            try damage(DamagedPage(1, .freeList))
        }
        for entry in schema {
            if refusesModules, entry.isVirtualTable { try damage(DamagedPage(1, .schemaEntry)) }
            if entry.rootPage != 0 { try walk(entry, header.textEncoding, damage) }
        }
        // No page may be unreferenced. If the log belongs to another copy of the database, unreferenced pages may be
        // the only sign.
        let lockPages = source.pageCount >= PageGeometry.lockPage(source.geometry.pageSize) ? 1 : 0
        if claims.count != Int(source.pageCount) - lockPages { try damage(DamagedPage(1, .missing)) }
    }

    @inlinable func walk(
        _ entry: SchemaEntry, _ encoding: TextEncoding?, _ damage: (DamagedPage) throws -> Void
    ) throws {
        var cursor = TreeCursor(source, root: entry.rootPage, claims: claims)
        var leaf: (page: UInt32, level: Int, bounds: RowIDBounds)?
        var last: Int64?
        while true {
            do {
                guard let cell = try cursor.next() else { break }
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
            } catch let fault as DamagedPage {
                try damage(fault)
            }
        }
        if cursor.isOfTable != entry.isRowIDTable(encoding) { try damage(DamagedPage(entry.rootPage, .otherKind)) }
    }
}

/// The faults that a ``StructureCheck`` finds in a database.
package struct StructureFaults {
    private var damage: Set<DamagedPage> = []
    /// The pages to which something leads and which have no fault themselves; also page 1, on which faults are reported
    /// that belong to no page.
    private var sound = PageSet()
    private let pageCount: UInt32

    /// Walks the whole database.
    ///
    /// - Throws: Any error thrown by the source.
    package init(of source: some PageSource) throws {
        pageCount = source.pageCount
        guard let header = try source.header() else {
            damage.insert(DamagedPage(1, .missing))
            return
        }
        let check = StructureCheck(source, refusesModules: false)
        try check.run(header) { damage.insert($0) }
        sound = check.claims
        for fault in damage where fault.page != 1 { sound.remove(fault.page) }
    }

    /// Whether a b-tree or the free list refers to a page after the last one, so that the database is longer than its
    /// number of pages states.
    package var areBeyondEnd: Bool { !beyondEnd.isEmpty }

    private var beyondEnd: Set<DamagedPage> { damage.filter { $0.reason == .missing && $0.page > pageCount } }

    /// Returns whether a rollback would damage a database.
    ///
    /// It does so if the file alone, with only its torn pages restored, has no fault, but would have one. If the file
    /// has a fault, as a killed transaction leaves it, the rollback damages it if a page that is sound, and not in the
    /// journal, would not be sound any more: an honest transaction changes no such page. Nothing may lead to a page after
    /// the last one.
    ///
    /// - Parameters:
    ///   - versions: The pages in the journal.
    ///   - pages: Returns the database with some of these pages; for `nil`, the file alone.
    /// - Throws: Any error thrown by the source.
    package static func areAdded<Pages: PageSource>(
        by versions: PageVersions, _ pages: (PageVersions?) throws -> Pages
    ) throws -> Bool {
        let after = try StructureFaults(of: pages(versions))
        guard !after.damage.isEmpty else { return false }
        let file = try pages(nil)
        let torn = try versions.mending(file)
        let stated = try pages(torn).header()?.claimedPages.map { UInt32(clamping: $0) } ?? .max
        let alone = try StructureFaults(of: pages(torn.with(pageCount: min(file.pageCount, stated))))
        if alone.damage.isEmpty { return true }
        // A torn first page does not show how many pages the file has.
        let whole = try StructureFaults(of: pages(torn.with(pageCount: file.pageCount)))
        for page in versions.offsets.keys { whole.sound.remove(page) }
        return whole.sound.count(notIn: after.sound, upTo: after.pageCount) > 0
            || !after.beyondEnd.isSubset(of: whole.damage)
    }
}

extension SchemaEntry {
    package var isTable: Bool { type.filter { $0 != 0 }.elementsEqual("table".utf8) }

    @usableFromInline var isVirtualTable: Bool { isTable && rootPage == 0 }

    /// Whether the entry's b-tree is that of a table with rowids; a table WITHOUT ROWID has an index b-tree.
    @usableFromInline func isRowIDTable(_ encoding: TextEncoding?) -> Bool {
        guard isTable else { return false }
        // Only options such as WITHOUT ROWID follow the columns.
        let sql = Self.unquoted(sql.map { Self.ascii($0, encoding) } ?? [])
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

    /// Returns text with its ASCII characters as single bytes, and at least one byte above them for any other character.
    private static func ascii(_ text: [UInt8], _ encoding: TextEncoding?) -> [UInt8] {
        guard let encoding, encoding != .utf8 else { return text }
        let low = encoding == .utf16LittleEndian ? 0 : 1
        return stride(from: 0, to: text.count - 1, by: 2).map { unit in
            text[unit + 1 - low] == 0 ? text[unit + low] : .max
        }
    }
}
