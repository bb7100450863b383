internal import CipherSQLiteFormat

/// Everything that the page reader finds in a database, its log and its journal, whatever they contain.
package struct PageReading {
    /// The number of cells, values and pieces of payloads.
    package private(set) var steps = 0
    package private(set) var damage = 0
    /// What went wrong; `nil` if nothing did.
    package private(set) var fault: String?

    /// Reads everything, in each form that the database has.
    package init(database: [UInt8], log: [UInt8]? = nil, journal: [UInt8]? = nil) throws {
        let database = HeldBytes(database)
        try FilePages(database).map { try read($0, FileHeader(of: database)) }
        if let log = log.map(HeldBytes.init), let header = try LogHeader(log),
            let versions = try header.committedPages(in: log)
        {
            try VersionedPages(database, versions, in: log).map { try read($0, FileHeader(of: database)) }
        }
        if let journal = journal.map(HeldBytes.init), let header = try JournalHeader(journal),
            let versions = try header.originalPages(in: journal, pageSize: FileHeader(of: database)?.pageSize ?? 0)
        {
            try VersionedPages(database, versions, in: journal).map { try read($0, FileHeader(of: database)) }
        }
    }

    /// A database that claims more than 100,000 pages is not read, because its reader would need memory for each
    /// page.
    private mutating func read(_ source: some PageSource, _ header: FileHeader?) throws {
        guard let header, source.pageCount <= 100_000 else { return }
        let usage = try PageUsage(of: source, header: header)
        damage += usage.damage.count
        let map = PointerMap(source.geometry)
        for page in 1...max(1, source.pageCount) { _ = try map.entry(of: page, in: source) }
        let (claims, before) = (PageSet(), steps)
        let roots = Set(usage.schema.map(\.rootPage)).union([1]).subtracting([0])
        for root in roots.sorted() { try walk(root, source, claims) }
        let pages = Int(source.pageCount)
        // A page has at most one cell for every six bytes, and a cell at most one value for every byte of its payload.
        let most = 2 * pages * source.geometry.pageSize + pages + 1000
        if steps - before > most { fault = "\(steps - before) steps in \(pages) pages" }
    }

    private mutating func walk(_ root: UInt32, _ source: some PageSource, _ claims: PageSet) throws {
        var cursor = TreeCursor(source, root: root, claims: claims)
        while true {
            do {
                guard let cell = try cursor.next() else { return }
                steps += 1
                let payload = try cursor.payload(of: cell)
                if payload.count != cell.length { fault = "\(payload.count) bytes of \(cell.length)" }
                var record = try RecordReader(payload, page: cell.page)
                while let value = try record.next() {
                    steps += 1
                    // Each byte must be readable.
                    switch value {
                    case .text(let bytes), .blob(let bytes): steps += [UInt8](bytes).count - bytes.count
                    default: continue
                    }
                }
            } catch is DamagedPage {
                damage += 1
            }
        }
    }
}
