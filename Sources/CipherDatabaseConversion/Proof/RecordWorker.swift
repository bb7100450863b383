internal import CipherErrors
internal import CipherPageOpening
internal import CipherPlatform
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Compares the b-trees of both files record by record, on one thread.
///
/// Damage to the copy is an error. Differences, and parts of the original that cannot be read, are left to SQL: equal
/// values may have different bytes, and the comparison with SQL names the difference.
// The worker is a structure because, in a class, each access to state that changes with every row would be checked for
// exclusivity.
struct RecordWorker {
    /// A unit of work.
    enum Unit {
        case tree(RecordTree)
        case part(RecordTree, TableParts.Part)
    }

    /// The records of a tree do not show whether it is equal.
    private struct Undecided: Error {}

    /// The pages of the copy that have been read.
    let claims = PageSet()
    /// The pages of the original that have been read, except for those in ``RecordTree/originalPages``.
    let originalClaims = PageSet()
    private let original: FilePages<ReadBytes>
    private let copy: CopyPages
    private let path: String
    private let progress: (Int64) throws -> Void
    private var bytes: Int64 = 0
    private var isReadingOriginal = false
    private var values: [RecordValue] = []
    private var leafSampler = Sampler()
    private var chainSampler = Sampler()

    /// The payload length in bytes above which payloads are compared piece by piece and not assembled.
    private static let longPayload = Int(TableWalk.longValue)

    init(
        _ original: FilePages<ReadBytes>, _ copy: CopyPages, path: String,
        progress: @escaping (Int64) throws -> Void
    ) {
        self.original = original
        self.copy = copy
        self.path = path
        self.progress = progress
    }

    /// Does a unit of work.
    ///
    /// - Returns: The parts into which the unit was divided, which are still to be done.
    /// - Throws: ``StoreError`` with the code `proofFailed` if the copy is damaged or not authentic; any error from
    ///   reading a file; any error thrown by `progress`.
    mutating func run(_ unit: Unit) throws -> [Unit] {
        isReadingOriginal = false
        do {
            switch unit {
            case .tree(let tree):
                switch tree.content {
                case .rows(_, let layout) where layout.key == nil:
                    let parts = try TableParts(of: copy, root: tree.copy, claims: claims)
                    guard parts.parts.count == 1 else { return parts.parts.map { .part(tree, $0) } }
                    try compareRows(of: tree, layout, parts.parts[0], level: parts.levels, originalClaims)
                case .rows(_, let layout): try compareKeyedRows(of: tree, layout)
                case .entries(let index): try compareEntries(of: tree, index)
                case .other:
                    try read(tree.copy, of: copy, claims)
                    isReadingOriginal = true
                    try read(tree.original, of: original, originalClaims)
                }
            case .part(let tree, let part):
                if tree.isUndecided, case .rows(_, let layout) = tree.content {
                    try compareRows(of: tree, layout, part, level: 1, PartClaims(overflow: originalClaims))
                }
            }
        } catch is Undecided {
            leaveToSQL(unit)
        } catch let damage as DamagedPage {
            guard isReadingOriginal else { throw StoreError.page(path, damage, forged: copy.forgedPage) }
            leaveToSQL(unit)
        }
        return []
    }

    private func leaveToSQL(_ unit: Unit) {
        switch unit {
        case .tree(let tree), .part(let tree, _): tree.leaveToSQL()
        }
    }

    /// Reads a tree completely.
    private mutating func read(_ root: UInt32, of pages: some PageSource, _ claims: PageSet) throws {
        var cursor = TreeCursor(pages, root: root, claims: claims)
        while let cell = try cursor.next() { try cursor.forEachPiece(of: cell) { try count($0.count) } }
    }

    private mutating func count(_ more: Int) throws {
        bytes += Int64(more)
        guard bytes > 1 << 20 else { return }
        try progress(bytes)
        bytes = 0
    }

    // MARK: Rows with rowids

    /// Compares the rows of a part.
    ///
    /// - Parameters:
    ///   - level: The number of interior pages above the part's leaves.
    ///   - originalClaims: Records the pages of the original.
    private mutating func compareRows(
        of tree: RecordTree, _ layout: RecordLayout, _ part: TableParts.Part, level: Int,
        _ originalClaims: some PageClaims
    ) throws {
        var findings = RecordTree.Findings(indexes: layout.indexes.count)
        var mine = TreeCursor(copy, root: part.root, claims: claims)
        var theirs = TreeCursor(original, root: tree.original, claims: originalClaims)
        if let above = part.bounds.above {
            isReadingOriginal = true
            try theirs.seek(after: above)
        }
        var last = part.bounds.above
        var leaf: (page: UInt32, bounds: RowIDBounds)?
        var theirLeaf: (page: UInt32, bounds: RowIDBounds)?
        while true {
            isReadingOriginal = false
            guard let cell = try mine.next() else { break }
            var isSample = leaf == nil
            if leaf?.page != cell.page {
                guard mine.isOfTable == true, mine.level == level else { throw DamagedPage(cell.page, .depth) }
                leaf = (cell.page, try mine.leafBounds().intersection(part.bounds))
                isSample = leafSampler.takes() || isSample || isNotable(cell.page)
            }
            guard last.map({ cell.rowid > $0 }) ?? true, leaf?.bounds.contains(cell.rowid) == true else {
                throw DamagedPage(cell.page, .keyOrder)
            }
            last = cell.rowid
            isReadingOriginal = true
            guard let row = try theirs.next(), theirs.isOfTable == true, row.rowid == cell.rowid else {
                throw Undecided()
            }
            // If the original's interior pages contradict its leaves, the search for the start of a part may have
            // failed.
            if theirLeaf?.page != row.page { theirLeaf = (row.page, try theirs.leafBounds()) }
            guard theirLeaf?.bounds.contains(row.rowid) == true else { throw Undecided() }
            let isChainSample = try compare(cell, &mine, row, &theirs)
            try take(row, &theirs, layout, &findings)
            if isChainSample || isSample && cell.length <= Self.longPayload {
                findings.samples.rows.append(cell.rowid)
            } else if isSample {
                findings.samples.leaves.append(cell.rowid)
            }
        }
        isReadingOriginal = true
        if let next = try theirs.next() {
            guard let upTo = part.bounds.upTo, next.rowid > upTo, try theirs.leafBounds().contains(next.rowid) else {
                throw Undecided()
            }
        }
        tree.add(findings, reaching: (originalClaims as? PartClaims)?.shared)
    }

    /// Counts a row of the original, and the entry that it requires in each index.
    private mutating func take(
        _ row: TreeCell, _ cursor: inout TreeCursor<FilePages<ReadBytes>>, _ layout: RecordLayout,
        _ findings: inout RecordTree.Findings
    ) throws {
        findings.tally.addRow()
        _ = try readValues(of: row, &cursor, atMost: layout.fieldCount)
        for (index, fields) in layout.indexes.enumerated() {
            var fingerprint = ValueFingerprint()
            for field in fields {
                switch field {
                case .rowid: fingerprint.add(.integer(row.rowid))
                case .value(let place):
                    // The column was added later, and the record does not contain its default value.
                    guard place < values.count else { throw Undecided() }
                    fingerprint.add(values[place])
                }
            }
            findings.tally.add(fingerprint.finish(), to: index)
        }
        for (number, field) in layout.notNull where field < values.count && values[field].isNull {
            findings.forbiddenNulls.insert(number)
        }
    }

    // MARK: Rows and entries with keys

    private mutating func compareKeyedRows(of tree: RecordTree, _ layout: RecordLayout) throws {
        var findings = RecordTree.Findings(indexes: layout.indexes.count)
        let keyCount = layout.key?.parts.filter(\.isKey).count ?? 0
        var order = layout.keyOrder
        try compareKeyed(tree, width: layout.key?.parts.count ?? 0, &findings) { worker, row, cursor, findings in
            try worker.take(row, &cursor, layout, &findings)
            guard worker.values.count >= keyCount else { throw Undecided() }
            if let step = order?.take(worker.values), step != .ascends { findings.isOrdered = false }
        }
        tree.add(findings)
    }

    private mutating func compareEntries(of tree: RecordTree, _ index: IndexComparison) throws {
        var findings = RecordTree.Findings()
        let width = index.layout.parts.count
        var entries = EntryTally(index.order, isUnique: index.layout.isUnique)
        try compareKeyed(tree, width: width, &findings) { worker, entry, cursor, _ in
            guard try worker.readValues(of: entry, &cursor, atMost: width + 1), worker.values.count == width else {
                throw Undecided()
            }
            entries.add(worker.values)
        }
        findings.entries = entries.fingerprints
        findings.isOrdered = entries.isOrdered
        tree.add(findings)
    }

    /// Compares two trees with keys, whose interior pages also hold cells.
    ///
    /// - Parameters:
    ///   - width: The number of values that identify a cell.
    ///   - take: Receives each cell of the original once it is known to be equal.
    private mutating func compareKeyed(
        _ tree: RecordTree, width: Int, _ findings: inout RecordTree.Findings,
        take: (
            inout RecordWorker, TreeCell, inout TreeCursor<FilePages<ReadBytes>>, inout RecordTree.Findings
        ) throws -> Void
    ) throws {
        var mine = TreeCursor(copy, root: tree.copy, claims: claims)
        var theirs = TreeCursor(original, root: tree.original, claims: originalClaims)
        var interiorPages: Set<UInt32> = []
        var leaf: (page: UInt32, level: Int)?
        while true {
            isReadingOriginal = false
            guard let cell = try mine.next() else { break }
            var isSample = false
            if mine.isOfTable != false { throw DamagedPage(cell.page, .noTreePage) }
            if cell.child != 0 {
                isSample = interiorPages.insert(cell.page).inserted
            } else if leaf?.page != cell.page {
                guard mine.level == leaf?.level ?? mine.level else { throw DamagedPage(cell.page, .depth) }
                isSample = leafSampler.takes() || leaf == nil || isNotable(cell.page)
                leaf = (cell.page, mine.level)
            }
            isReadingOriginal = true
            guard let other = try theirs.next(), theirs.isOfTable == false else { throw Undecided() }
            let isChainSample = try compare(cell, &mine, other, &theirs)
            try take(&self, other, &theirs, &findings)
            guard isSample || isChainSample, cell.length <= Self.longPayload else { continue }
            _ = try readValues(of: other, &theirs, atMost: width)
            guard values.count >= width else { throw Undecided() }
            findings.samples.entries.append(values[..<width].map(\.sql))
        }
        guard mine.isOfTable == false else { throw DamagedPage(tree.copy, .noTreePage) }
        isReadingOriginal = true
        guard try theirs.next() == nil, theirs.isOfTable == false else { throw Undecided() }
    }

    // MARK: Payloads

    /// Compares two payloads.
    ///
    /// - Returns: Whether the payload has overflow pages that SQLCipher should also read.
    /// - Throws: `Undecided` if they differ.
    private mutating func compare(
        _ cell: TreeCell, _ mine: inout TreeCursor<CopyPages>, _ other: TreeCell,
        _ theirs: inout TreeCursor<FilePages<ReadBytes>>
    ) throws -> Bool {
        try count(cell.local.count)
        guard cell.length == other.length else { throw Undecided() }
        if cell.local.count == cell.length, other.local.count == other.length {
            guard cell.local.isEqual(to: other.local) else { throw Undecided() }
            return false
        }
        return try compareChains(cell, &mine, other, &theirs)
    }

    private mutating func compareChains(
        _ cell: TreeCell, _ mine: inout TreeCursor<CopyPages>, _ other: TreeCell,
        _ theirs: inout TreeCursor<FilePages<ReadBytes>>
    ) throws -> Bool {
        isReadingOriginal = true
        var otherRest = try theirs.rest(of: other)
        isReadingOriginal = false
        var rest = try mine.rest(of: cell)
        var (left, right) = (cell.local, other.local)
        var isSample = cell.local.count < cell.length && chainSampler.takes()
        while true {
            if left.isEmpty {
                isReadingOriginal = false
                if cell.length <= Self.longPayload, isNotable(rest.page) { isSample = true }
                if let piece = try mine.next(&rest) { left = piece }
                try count(left.count)
            }
            if right.isEmpty {
                isReadingOriginal = true
                if let piece = try theirs.next(&otherRest) { right = piece }
            }
            let count = min(left.count, right.count)
            // Payloads of equal length end at the same time.
            guard count > 0 else { break }
            guard left.part(0, count).isEqual(to: right.part(0, count)) else { throw Undecided() }
            left = left.part(count, left.count - count)
            right = right.part(count, right.count - count)
        }
        isReadingOriginal = false
        guard cell.local.count == cell.length || rest.page == 0 else { throw DamagedPage(cell.page, .payloadLength) }
        isReadingOriginal = true
        return isSample
    }

    /// Reads the first values of a record of the original into `values`, or all of them if there are fewer.
    ///
    /// The whole header is checked: SQLite cannot read a row whose header contradicts the length of the record, even if
    /// the copy has the same bytes.
    ///
    /// - Returns: Whether these are all values of the record.
    /// - Throws: ``DamagedPage`` if the header is invalid; `Undecided` if the values of a long record are not on the
    ///   cell's own page.
    private mutating func readValues(
        of cell: TreeCell, _ cursor: inout TreeCursor<FilePages<ReadBytes>>, atMost count: Int
    ) throws -> Bool {
        isReadingOriginal = true
        if cell.local.count < cell.length {
            // Usually the values are within the part on the cell's own page.
            do {
                return try readValues(cell.local, of: cell, atMost: count)
            } catch is DamagedPage {
                guard cell.length <= Self.longPayload else { throw Undecided() }
            }
        }
        return try readValues(cursor.payload(of: cell), of: cell, atMost: count)
    }

    private mutating func readValues(
        _ payload: UnsafeRawBufferPointer, of cell: TreeCell, atMost count: Int
    ) throws -> Bool {
        values.removeAll(keepingCapacity: true)
        var record = try RecordReader(payload, page: cell.page)
        while values.count < count {
            guard let value = try record.next() else {
                try record.checkRest(ofPayload: cell.length)
                return true
            }
            values.append(value)
        }
        try record.checkRest(ofPayload: cell.length)
        return false
    }

    /// Returns whether SQLCipher must read a page in any case: the last one, and those around the bytes that SQLite
    /// locks.
    private func isNotable(_ page: UInt32) -> Bool {
        let lockPage = PageGeometry.lockPage(copy.geometry.pageSize)
        return page == copy.pageCount || page == lockPage - 1 || page == lockPage + 1
    }
}

/// A record of the pages that are reached for one part of a table.
///
/// The parts of a table share its interior pages, and each part also reads the leaf after its own. A payload belongs to
/// one part only.
private final class PartClaims: PageClaims {
    let shared = PageSet()
    private let overflow: PageSet

    init(overflow: PageSet) { self.overflow = overflow }

    func claim(_ page: UInt32, for use: PageUse) -> Bool {
        if case .overflow = use { overflow.claim(page, for: use) } else { shared.claim(page, for: use) }
    }

    func noteUnfilled(_ page: UInt32) { shared.noteUnfilled(page) }
}

/// Selects one item at random of each hundred.
package struct Sampler {
    private var place = 0
    private var selected = Int.random(in: 0..<100)

    package init() {}

    /// Returns whether the next item is selected.
    package mutating func takes() -> Bool {
        if place == 100 { self = Sampler() }
        defer { place += 1 }
        return place == selected
    }
}

extension UnsafeRawBufferPointer {
    /// Returns whether the bytes are equal.
    ///
    /// Both buffers must have the same length.
    fileprivate func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
        guard let left = baseAddress, let right = other.baseAddress else { return true }
        return memcmp(left, right, count) == 0
    }
}

extension RecordValue {
    /// The SQL that SQLite reads as exactly this value, bit by bit.
    fileprivate var sql: SQL {
        switch self {
        case .null: "NULL"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        // The text is written out because SQLite assumes that a bound blob cast to TEXT is UTF-8, whatever the
        // database's encoding is.
        case .text(let bytes): SQL(text: "CAST(x'\(Self.hex(bytes))' AS TEXT)")
        case .blob(let bytes): "\(Array(bytes))"
        }
    }

    private static func hex(_ bytes: UnsafeRawBufferPointer) -> String {
        let digits = Array("0123456789abcdef".unicodeScalars)
        var text = String.UnicodeScalarView()
        for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
        return String(text)
    }
}
