internal import CipherCatalog
internal import CipherSQLite
package import CipherSQLiteFormat

/// One reading of everything that a damaged database still contains, row by row.
///
/// A row goes into its table if the table's b-tree leads to it, or if its page is one that the b-tree has lost. In the
/// second case, the candidates are the tables whose b-trees lack pages at exactly that place and whose columns the
/// records fit. The pointer map and the remaining index entries narrow the candidates down. If more than one candidate
/// remains, or if the page may have belonged to an unknown table, the row is set aside, as are all other rows. Two
/// readings of the same pages find the same rows.
package struct DatabaseReading<Source: PageSource> {
    let source: Source
    package let forms: SchemaForms
    package let encoding: TextEncoding
    /// The file's header; `nil` if page 1 is lost.
    let header: FileHeader?
    /// Whether the header is authenticated, or the whole file is not.
    let isHeaderProven: Bool
    /// Whether zeros at the end of a value, from the beginning of its last page on, are never taken for a lost page.
    let believesZeros: Bool
    /// Whether pages or entries of the schema are missing or damaged.
    let isSchemaDamaged: Bool
    /// Whether the database may have had tables that are not in ``forms``.
    let mayLackTables: Bool
    /// A closure that is called regularly; it throws to end the reading.
    let checkpoint: () throws -> Void

    package init(
        _ source: Source, _ forms: SchemaForms, _ encoding: TextEncoding, header: FileHeader?, isHeaderProven: Bool,
        believesZeros: Bool, isSchemaDamaged: Bool, mayLackTables: Bool, checkpoint: @escaping () throws -> Void
    ) {
        self.source = source
        self.forms = forms
        self.encoding = encoding
        self.header = header
        self.isHeaderProven = isHeaderProven
        self.believesZeros = believesZeros
        self.isSchemaDamaged = isSchemaDamaged
        self.mayLackTables = mayLackTables
        self.checkpoint = checkpoint
    }

    /// Passes every row to `sink`, the rows of the tables first.
    ///
    /// Two rows with the same rowid or key may be passed; the first one belongs to the table.
    ///
    /// - Throws: Any error thrown by the source or by `sink`.
    package func run(_ sink: @escaping (ReadRow) throws -> Void) throws -> ReadingFindings {
        var run = try ReadingRun(self, LivingPointerMap(source, header), sink)
        try run.readTables()
        try run.claimIndexes()
        try run.claimFreePages()
        // What is read after this may be old.
        run.findings.sharesPages = run.owners.areContradicted
        try run.readOrphans()
        try run.readFreePages()
        try run.readContinued()
        try run.checkKeys()
        run.compareIndexes()
        return run.findings
    }
}

/// The state of one reading.
struct ReadingRun<Source: PageSource>: ~Copyable {
    let reading: DatabaseReading<Source>
    let sink: (ReadRow) throws -> Void
    let owners: PageOwners
    var payloads: PayloadReader<Source>
    var findings: ReadingFindings
    /// The b-tree of each table, by the table's position.
    private(set) var tables: [TreeMap] = []
    /// The b-tree of each index, by the positions of the table and the index; `nil` if its root is not known.
    private(set) var indexes: [[TreeMap?]] = []
    let shapes: [RecordShape]
    /// The tables in which modules keep the content of virtual tables.
    let ofModules: Set<Int>
    /// An undamaged page with rows outside the range that its parent assigns to it.
    ///
    /// Either the page is in an earlier state, and its rows have since moved elsewhere, or the parent is damaged.
    struct Stray {
        let table: Int
        let place: TreeMap.Place
    }

    private(set) var strays: [Stray] = []
    /// The cells of tables whose last overflow page names a next page.
    ///
    /// Either this number alone is wrong, or the whole page is, or the cell leads to the overflow pages of another row.
    private var continued: [(table: Int, page: UInt32, index: Int)] = []
    /// The number of rows found in each table.
    private var rows: [Int]
    /// The entries that the rows found in each table have in its indexes, by the positions of the table and the index.
    private var expected: [[EntryTally]]
    /// The entries of each undamaged, plain index.
    private var entries: [[EntryTally?]]
    /// The storage classes found in the columns of each table.
    var observed: [ObservedValues]
    /// The evidence about the free pages.
    var freePages: FreePageEvidence
    /// The pointer map of a database with auto-vacuum.
    let pointerMap: LivingPointerMap?

    var source: Source { reading.source }
    var forms: SchemaForms { reading.forms }

    init(
        _ reading: DatabaseReading<Source>, _ pointerMap: LivingPointerMap?, _ sink: @escaping (ReadRow) throws -> Void
    ) throws {
        self.pointerMap = pointerMap
        freePages = FreePageEvidence()
        self.reading = reading
        self.sink = sink
        owners = PageOwners(reading.source)
        payloads = PayloadReader(reading.source, owners)
        findings = ReadingFindings(tables: reading.forms.tables.map { _ in ReadingFindings.Table() })
        // In UTF-8, a name consists of the bytes in the schema, whether valid or not.
        let counted = reading.forms.tables.filter(\.countsRowIDs).map {
            reading.encoding == .utf8 ? $0.name.bytes : reading.encoding.bytes($0.name.text)
        }
        shapes = reading.forms.tables.map { RecordShape($0, counted: Set(counted)) }
        let modules = reading.forms.virtualTables.map { $0.name.folded + [UInt8(ascii: "_")] }
        ofModules = Set(
            reading.forms.tables.indices.filter { number in
                modules.contains { reading.forms.tables[number].name.folded.starts(with: $0) }
            })
        rows = reading.forms.tables.map { _ in 0 }
        expected = reading.forms.tables.map { $0.indexes.map { _ in EntryTally() } }
        entries = reading.forms.tables.map { $0.indexes.map { _ in nil } }
        observed = reading.forms.tables.map { ObservedValues(columns: $0.stored.count) }
        pointerMap?.claim(owners)
        let schema = try SchemaReading.map(reading.source, owners)
        findings.isSchemaDamaged = reading.isSchemaDamaged || !schema.isWhole
        findings.isHeaderLost = reading.header == nil
        findings.isPageCountKnown = reading.isHeaderProven
        findings.missingPages = max(0, (reading.header?.claimedPages ?? 0) - Int(reading.source.pageCount))
        for place in schema.pages {
            // The schema's overflow pages must not be taken for those of other b-trees.
            guard let content = try content(place.page) else { continue }
            defer { content.keep() }
            for cell in content.cells { _ = try? payloads.read(cell) { _ in } }
        }
        for number in forms.tables.indices { tables.append(try map(table: number)) }
        for number in forms.tables.indices {
            indexes.append(try forms.tables[number].indexes.map { try map($0) })
        }
        for (number, map) in tables.enumerated() {
            findings.tables[number].lostPages.formUnion(map.damaged)
            findings.tables[number].lostPages.formUnion(map.missing.map(\.page).filter { $0 != 0 })
        }
    }

    // MARK: B-trees

    private func map(table number: Int) throws -> TreeMap {
        let table = forms.tables[number]
        guard let root = table.root, root > 0 else { return TreeMap(lostRoot: 0) }
        return try TreeMap(root: root, isTable: !table.isWithoutRowID, in: source, owners) { content in
            guard content.tree.kind.isLeaf || table.isWithoutRowID else { return true }
            return content.cells.contains { cell in
                guard let types = RecordReader.types(cell) else { return true }
                return types.count <= table.stored.count && types.count >= table.key.count
                    && table.rowidValue.map { $0 >= types.count || types[$0] == 0 } != false
            }
        }
    }

    private func map(_ index: IndexForm) throws -> TreeMap? {
        guard let root = index.root, root > 0 else { return nil }
        let rowids = index.parts.indices.filter { index.parts[$0].position == -1 }
        return try TreeMap(root: root, isTable: false, in: source, owners) { content in
            content.cells.contains { cell in
                guard let types = RecordReader.types(cell) else { return true }
                return types.count == index.parts.count && rowids.allSatisfy { RecordReader.isInteger(types[$0]) }
            }
        }
    }

    /// Returns the places in a table's b-tree where pages that nothing leads to may belong.
    ///
    /// If a leaf cannot be read, it is itself the missing page, unless its page has another use. In that case, the
    /// child pointer to it is damaged, and the leaf is elsewhere.
    func openings(in table: Int) -> [TreeMap.Place] {
        tables[table].gaps
            + tables[table].lostLeaves.filter { leaf in
                leaf.page > source.pageCount
                    ? leaf.page > UInt32(clamping: reading.header?.claimedPages ?? 0) : !owners.isUnclaimed(leaf.page)
            }
    }

    func content(_ number: UInt32) throws -> PageContent? {
        try HeldPage(number, in: source).flatMap { PageContent($0, source.geometry) }
    }

    // MARK: Live rows

    mutating func readTables() throws {
        for (number, map) in tables.enumerated() {
            for place in map.pages {
                try reading.checkpoint()
                guard let content = try content(place.page) else { continue }
                defer { content.keep() }
                let isTable = content.tree.kind.isTable
                if isTable, content.isWhole, !content.cells.allSatisfy({ place.contains($0.rowid) }) {
                    strays.append(Stray(table: number, place: place))
                    findings.tables[number].lostPages.insert(place.page)
                    continue
                }
                for cell in content.cells {
                    let isDoubtful = isTable && !place.contains(cell.rowid)
                    try hand(cell, content, isDoubtful ? .apart(.damaged, tables: [number]) : .table(number))
                }
                for cell in content.doubtful { try hand(cell, content, .apart(.damaged, tables: [number])) }
            }
        }
    }

    /// Checks the order of the keys of the tables WITHOUT ROWID.
    ///
    /// If the order is not known, rows that may be entries of an index that lacks pages may be old.
    mutating func checkKeys() throws {
        // The rows have claimed their overflow pages in the other reader.
        var payloads = PayloadReader(source, PageOwners(source))
        for (number, table) in forms.tables.enumerated() where table.isWithoutRowID && tables[number].isWhole {
            guard let root = table.root,
                var order = table.keyOrder(ignoresDescending: (reading.header?.schemaFormat ?? 4) < 4)
            else {
                try countPossibleEntries(number)
                continue
            }
            var cursor = TreeCursor(source, root: root)
            do {
                while let cell = try cursor.next() {
                    try reading.checkpoint()
                    let ascends = try payloads.peek(cell) { bytes in
                        let values = try RecordReader.values(bytes, page: cell.page)
                        return values.count >= table.key.count && order.take(values) == .ascends
                    }
                    guard ascends else {
                        findings.tables[number].isDisordered = true
                        break
                    }
                }
            } catch is DamagedPage, is PayloadReader<Source>.Loss {
                // The rows have been counted as lost.
            }
        }
    }

    private mutating func countPossibleEntries(_ table: Int) throws {
        for place in hasAllIndexPages ? [] : tables[table].pages {
            try reading.checkpoint()
            guard let content = try content(place.page) else { continue }
            defer { content.keep() }
            if mayBeIndex(content) { findings.tables[table].oldRows += content.cells.count }
        }
    }

    /// Sets aside the rows whose last overflow page names a next page, unless another row has claimed a page of them.
    mutating func readContinued() throws {
        for (table, page, index) in continued {
            try reading.checkpoint()
            guard let content = try content(page), let cell = content.cells.first(where: { $0.index == index }) else {
                continue
            }
            defer { content.keep() }
            try hand(cell, content, .apart(.damaged, tables: [table]), mayContinue: true)
        }
    }

    /// Passes a row to the sink, or records that it is lost.
    ///
    /// - Parameter mayContinue: Whether the row's last overflow page may name a next page.
    mutating func hand(
        _ cell: TreeCell, _ content: borrowing PageContent, _ destination: ReadRow.Destination,
        mayContinue: Bool = false
    ) throws {
        let (reading, sink, isWhole) = (reading, sink, content.isWhole)
        let rowid = content.tree.kind.isTable ? cell.rowid : nil
        var emptied: UInt32?
        var seen: (table: Int, classes: [UInt8], entries: [UInt64])?
        do {
            var claims = true
            if case .apart(.deleted, _) = destination { claims = false }
            // The overflow pages of a deleted row may now belong to another row.
            try payloads.read(cell, claims: claims, mayContinue: mayContinue) { payload in
                let values = try RecordReader.values(payload.bytes, page: cell.page)
                var checked = reading.checked(destination, values, isWhole: isWhole)
                if !reading.believesZeros, let empty = payload.empty,
                    Self.isLost(values, payload.bytes, from: empty.start, reading.encoding)
                {
                    if case .table(let number) = destination {
                        emptied = empty.page
                        checked = .apart(.damaged, tables: [number])
                    }
                }
                if case .table(let number) = checked {
                    seen = (
                        number, ObservedValues.classes(values),
                        reading.forms.tables[number].entryPrints(rowid, values)
                    )
                }
                try sink(ReadRow(destination: checked, page: cell.page, rowid: rowid, values: values))
            }
            if let seen {
                rows[seen.table] += 1
                observed[seen.table].add(seen.classes)
                for (index, entry) in seen.entries.enumerated() { expected[seen.table][index].add(entry) }
            }
            if let emptied { note(lost: emptied, destination) }
        } catch let loss as PayloadReader<Source>.Loss {
            note(lost: loss.page, destination)
            if loss.isContinued, case .table(let number) = destination {
                continued.append((number, cell.page, cell.index))
            }
        } catch let damage as DamagedPage {
            note(lost: damage.page, destination)
        }
    }

    private mutating func note(lost page: UInt32, _ destination: ReadRow.Destination) {
        switch destination {
        case .table(let number):
            findings.tables[number].lostPages.insert(page)
            findings.tables[number].lostRows += 1
        case .apart(.deleted, _): break
        case .apart(_, let tables):
            if tables.count == 1 {
                findings.tables[tables[0]].lostPages.insert(page)
            } else {
                findings.lostPages.insert(page)
            }
        }
    }

    /// Returns whether the zeros from an offset on come from a lost page and are not part of the row.
    ///
    /// Zeros in a value rarely begin exactly at a page boundary, and text rarely begins with them.
    private static func isLost(
        _ values: [RecordValue], _ payload: UnsafeRawBufferPointer, from start: Int, _ encoding: TextEncoding
    ) -> Bool {
        let unit = encoding == .utf8 ? 1 : 2
        guard let base = payload.baseAddress else { return false }
        return values.contains { value in
            // The number of bytes of a character, at least.
            let (bytes, unit) =
                switch value {
                case .text(let bytes): (bytes, unit)
                case .blob(let bytes): (bytes, 0)
                default: (UnsafeRawBufferPointer(start: nil, count: 0), 0)
                }
            guard !bytes.isEmpty, let first = bytes.baseAddress, case let place = start - (first - base),
                place < bytes.count
            else { return false }
            return place > 0 ? bytes[max(0, place - max(1, unit))..<place].contains { $0 != 0 } : unit > 0
        }
    }

    // MARK: Pages without rows

    /// Claims the overflow pages of the indexes, and compares each table's rows with those that its indexes name.
    mutating func claimIndexes() throws {
        for (table, maps) in indexes.enumerated() {
            for (index, map) in maps.enumerated() {
                guard let map else { continue }
                var isWhole = map.isWhole
                var (count, tally) = (0, EntryTally())
                for place in map.pages {
                    try reading.checkpoint()
                    guard let content = try content(place.page) else { continue }
                    defer { content.keep() }
                    for cell in content.cells {
                        count += 1
                        do {
                            tally.add(
                                try payloads.read(cell) {
                                    try RecordReader.values($0.bytes, page: cell.page).fingerprint()
                                })
                        } catch {
                            isWhole = false
                        }
                    }
                }
                if !isWhole {
                    findings.damagedIndexes.append((table, index))
                } else if forms.tables[table].indexes[index].isPlain {
                    findings.tables[table].indexedRows = max(count, findings.tables[table].indexedRows ?? 0)
                    entries[table][index] = tally
                }
            }
            // If pages of the table are known to contradict their parents, these pages account for the missing rows.
            guard let indexed = findings.tables[table].indexedRows, indexed > rows[table],
                !strays.contains(where: { $0.table == table })
            else { continue }
            findings.tables[table].lacksRows = true
            tables[table].lackRows()
        }
    }

    /// Whether no page of a b-tree is known to be lost or damaged.
    var isEveryTreeWhole: Bool {
        !findings.isSchemaDamaged && findings.damagedIndexes.isEmpty && hasAllIndexPages && tables.allSatisfy(\.isWhole)
            && findings.tables.allSatisfy(\.lostPages.isEmpty)
    }

    /// Compares the rows found in each table with those that its undamaged indexes name.
    mutating func compareIndexes() {
        for table in forms.tables.indices {
            let whole = entries[table].indices.filter { entries[table][$0] != nil }
            findings.tables[table].isConfirmed =
                !whole.isEmpty && whole.allSatisfy { entries[table][$0] == expected[table][$0] }
        }
    }
}

extension DatabaseReading {
    /// Returns a row's destination; the row is set aside if its table cannot contain it.
    func checked(_ destination: ReadRow.Destination, _ values: [RecordValue], isWhole: Bool) -> ReadRow.Destination {
        guard case .table(let number) = destination else { return destination }
        let table = forms.tables[number]
        var isPossible = values.count <= table.stored.count && values.count >= table.key.count
        if let place = table.rowidValue, place < values.count, case .null = values[place] {
        } else if table.rowidValue.map({ $0 < values.count }) == true {
            isPossible = false
        }
        for value in values.prefix(table.key.count) { if case .null = value { isPossible = false } }
        if isPossible, !table.repeatsAgree(values) { isPossible = false }
        if !isWhole, values.hasImplausibleText(encoding) { isPossible = false }
        return isPossible ? destination : .apart(.damaged, tables: [number])
    }
}

extension TableForm {
    /// Returns whether a record has the same value wherever it stores a column that the key contains twice.
    fileprivate func repeatsAgree(_ values: [RecordValue]) -> Bool {
        guard distinct.count < stored.count else { return true }
        return stored.indices.prefix(values.count).allSatisfy { place in
            guard let first = stored.firstIndex(of: stored[place]), first < place else { return true }
            return values[first].isIdentical(to: values[place])
        }
    }
}

extension RecordValue {
    fileprivate func isIdentical(to other: RecordValue) -> Bool {
        switch (self, other) {
        case (.null, .null): true
        case (.integer(let left), .integer(let right)): left == right
        case (.real(let left), .real(let right)): left.bitPattern == right.bitPattern
        case (.text(let left), .text(let right)), (.blob(let left), .blob(let right)): left.elementsEqual(right)
        default: false
        }
    }
}
