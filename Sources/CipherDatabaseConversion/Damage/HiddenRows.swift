internal import CipherErrors
internal import CipherRecovery
internal import CipherSQLiteFormat

/// Pages that may hold rows of a table, although SQLite does not find the rows there.
///
/// SQLite reads such a database without an error, so a copy has only the rows that SQLite finds. Source: SQLite, "PRAGMA
/// integrity_check".
enum HiddenRows {
    /// Searches for a page that two tables or two rows use, for pages of tables or the schema that hold more or less
    /// than the cells that SQLite finds, for leaves of tables that are in the wrong place, and for pages with rows that
    /// nothing leads to.
    ///
    /// A table's b-tree page that an index or the free list also contains still holds its rows. If a page of the free
    /// list cannot be read, unreferenced pages may be free ones, so they count only if there are more of them than the
    /// header accounts for.
    ///
    /// - Parameter path: The path of the database, for errors.
    /// - Returns: The findings, as sentences.
    /// - Throws: ``StoreError`` with the code `corrupt` if the schema is empty although there are pages of tables; any
    ///   error from reading the pages.
    static func find(in pages: some PageSource, of path: String) throws -> [String] {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: pages.geometry.pageSize, alignment: 16)
        defer { memory.deallocate() }
        guard let start = try pages.lend(1, memory) else { return [] }
        let header = FileHeader(bytes: Array(start), fileSize: 0)
        let usage = try PageUsage(of: pages, header: header)
        let tables = usage.schema.filter(\.isTable)
        let roots = Set(tables.map(\.rootPage) + [1])
        func isOfTable(_ use: PageUse) -> Bool { use.root.map(roots.contains) ?? false }
        if let page = usage.repeatedUses.first(where: { page, use in
            if isOfTable(use) { return true }
            if case .tree = use { return false }
            guard case .overflow(let root) = usage[page] else { return false }
            return roots.contains(root)
        })?.page {
            return ["page \(page) of a table is also used elsewhere: rows may be missing or wrong"]
        }
        let encoding = header.textEncoding ?? .utf8
        let indexes = try usage.schema.filter { try $0.isIndexWithRows(in: pages) }.map {
            "page \($0.rootPage), the root of index \(SchemaText($0, encoding).name), is a page of a table: rows may be "
                + "missing"
        }
        let findings = indexes + pagesInDoubt(usage, tables, encoding)
        let unused = usage.lostPages.filter { $0 <= header.claimedPages ?? .max }
        let missing = usage.freeList.map { Int(header.freePages) - $0.trunks.count - $0.leaves.count } ?? 0
        let mayBeLost = usage.freeList.map { $0.isCut || $0.isGarbled && !pages.areAuthenticated } ?? false
        guard unused.count > (mayBeLost ? missing : 0) else { return findings }
        let hidden = try unused.filter { number in
            guard let bytes = try pages.lend(number, memory), PageShape(bytes).isTree,
                let page = try? TreePage(bytes, number: number, pages.geometry)
            else { return false }
            // The pages of a WITHOUT ROWID table are of the same kind as those of an index.
            return usage.schema.isEmpty || page.cellCount > 0 || !page.kind.isLeaf
        }
        guard let first = hidden.first else { return findings }
        let count = hidden.count == 1 ? "1 page looks" : "\(hidden.count) pages look"
        let finding =
            "\(count) like part of a table or an index, but none contains \(hidden.count == 1 ? "it" : "them")"
        guard !usage.schema.isEmpty else {
            throw StoreError.damaged(path, "the schema has no entries: \(finding) (page \(first))")
        }
        return findings + ["\(finding) (page \(first)): rows may be missing"]
    }

    /// Returns a finding for the schema and for each table with pages that do not fill their content areas, and with
    /// leaves that have rowids outside of their bounds.
    private static func pagesInDoubt(_ usage: PageUsage, _ tables: [SchemaEntry], _ encoding: TextEncoding) -> [String]
    {
        func byRoot(_ pages: [UInt32]) -> [UInt32: [UInt32]] { Dictionary(grouping: pages) { usage[$0]?.root ?? 0 } }
        let (unfilled, misplaced) = (byRoot(usage.unfilledPages), byRoot(usage.misplacedLeaves))
        let trees: [(root: UInt32, name: String, content: String)] =
            [(1, "the schema", "tables, views or triggers")]
            + tables.map { ($0.rootPage, "table \(SchemaText($0, encoding).name)", "rows") }
        return trees.flatMap { root, name, content in
            func finding(_ pages: [UInt32]?, _ what: String, _ fault: String) -> [String] {
                guard let pages, let first = pages.first else { return [] }
                let others = pages.count - 1
                let rest = others == 0 ? "" : ", and on \(others) other page\(others == 1 ? "" : "s"),"
                return ["\(what) on page \(first) of \(name)\(rest) \(fault): \(content) may be missing or wrong"]
            }
            return finding(
                unfilled[root], "the rows and the free space", "do not exactly fill the page's content area")
                + finding(misplaced[root], "the rowids", "are outside of the range of the page")
        }
    }
}
