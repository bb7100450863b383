/// A row of the schema table, as bytes in the database's encoding.
///
/// Source: SQLite, "Database File Format", section 2.6.
package struct SchemaEntry: Equatable, Sendable {
    package let rowid: Int64
    /// The type of the object: `table`, `index`, `view` or `trigger`.
    package let type: [UInt8]
    package let name: [UInt8]
    /// The table of an index or trigger; for any other entry, its own name.
    package let tableName: [UInt8]
    /// The root page of the b-tree; 0 for an entry without one.
    package let rootPage: UInt32
    /// The definition; `nil` for an index that SQLite created for a constraint.
    package let sql: [UInt8]?

    /// Reads a row of the schema table.
    ///
    /// - Throws: ``DamagedPage`` if the row does not describe an object.
    package init(_ cell: TreeCell, _ payload: UnsafeRawBufferPointer) throws(DamagedPage) {
        var record = try RecordReader(payload, page: cell.page)
        guard let type = Self.text(try record.next()), let name = Self.text(try record.next()),
            let tableName = Self.text(try record.next()), let root = Self.root(try record.next()),
            let last = try record.next()
        else { throw DamagedPage(cell.page, .schemaEntry) }
        rowid = cell.rowid
        self.type = type
        self.name = name
        self.tableName = tableName
        rootPage = root
        sql = Self.text(last)
    }

    private static func text(_ value: RecordValue?) -> [UInt8]? {
        guard case .text(let bytes) = value else { return nil }
        return Array(bytes)
    }

    private static func root(_ value: RecordValue?) -> UInt32? {
        switch value {
        case .integer(let number): return UInt32(exactly: number)
        case .null: return 0
        default: return nil
        }
    }

    /// Returns whether this is an index whose root page is a page of a table, with rows.
    ///
    /// If a write of page 1 is lost, the old schema can contain an index whose root page now belongs to a new table.
    ///
    /// - Throws: Any error thrown by the source.
    package func isIndexWithRows(in source: some PageSource) throws -> Bool {
        guard !isTable, rootPage > 0 else { return false }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: source.geometry.pageSize, alignment: 16)
        defer { memory.deallocate() }
        guard let bytes = try source.lend(rootPage, memory),
            let root = try? TreePage(bytes, number: rootPage, source.geometry)
        else { return false }
        return root.kind.isTable && root.cellCount > 0
    }

    /// Reads the schema.
    ///
    /// - Parameters:
    ///   - claims: Records the pages that are reached.
    ///   - damage: Called for each damaged page that is skipped; it throws to end the walk.
    /// - Throws: Any error thrown by the source or by `damage`.
    package static func all(
        in source: some PageSource, claims: any PageClaims = PageSet(), damage: (DamagedPage) throws -> Void
    ) throws -> [SchemaEntry] {
        var cursor = TreeCursor(source, root: 1, claims: claims)
        var entries: [SchemaEntry] = []
        while true {
            do {
                guard let cell = try cursor.next() else { return entries }
                guard cursor.isOfTable == true else { throw DamagedPage(cell.page, .noTreePage) }
                entries.append(try SchemaEntry(cell, try cursor.payload(of: cell)))
            } catch let error as DamagedPage {
                try damage(error)
            }
        }
    }
}
