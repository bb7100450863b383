internal import CipherCatalog
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Reading of b-tree pages that nothing leads to.
extension ReadingRun {
    /// A page that nothing leads to, and the evidence of where it belongs.
    private struct Orphan {
        let page: UInt32
        let isTable: Bool
        /// The tables whose columns all records of the page fit, and that the pointer map does not rule out.
        var tables: Set<Int>
        /// The tables whose columns all records of the page fit.
        let fitting: Set<Int>
        /// Those of ``tables`` whose b-trees lack pages at exactly the place where the page's rows belong.
        var placed: Set<Int> = []
        /// Whether the page may also belong to an index.
        var mayBeIndex = false
        /// Whether the page may also belong to a table with an unknown root that was removed from ``placed``, because
        /// several b-trees fit that table.
        var mayBeGiven = false
        /// The page's use according to the pointer map; `nil` if it is not known.
        var use: LivingPointerMap.Use?
        /// Whether pages that were read show that ``use`` is current.
        var isUseConfirmed: Bool {
            switch use {
            case .tree(_, let isConfirmed): isConfirmed
            case .free, .overflow: true
            case nil: false
            }
        }
        /// The topmost page that leads to this page, or this page itself.
        var top: UInt32 = 0
        /// The tables whose indexes name rows of this page, or of whose b-tree the page is part according to the
        /// pointer map.
        var confirmed: Set<Int> = []
        /// The tables whose undamaged indexes rule out every row of this page.
        var denied: Set<Int> = []
    }

    mutating func readOrphans() throws {
        guard source.pageCount > 1 else { return }
        countHidden()
        let openings = tables.indices.map { self.openings(in: $0) }
        let gapped = Set(openings.indices.filter { !openings[$0].isEmpty })
        let isMissing = findings.isSchemaDamaged || tables.contains { !$0.missing.isEmpty }
        var orphans: [Orphan] = []
        var parents: [UInt32: UInt32] = [:]
        var survey = OrphanSurvey()
        for number in 1...source.pageCount where owners.isUnclaimed(number) {
            try reading.checkpoint()
            guard let page = try HeldPage(number, in: source) else {
                survey.add(number)
                if isMissing { findings.lostPages.insert(number) }
                continue
            }
            guard let content = PageContent(page, source.geometry) else {
                // A page that neither lists pages nor names a next page is a trunk without leaves, or no trunk at all.
                if page.isEmpty || page.bytes.big32(4) != 0 || page.bytes.big32(0) != 0 { survey.add(number) }
                if page.isEmpty, isMissing { findings.lostPages.insert(number) }
                continue
            }
            if !content.tree.kind.isLeaf {
                for cell in content.cells { parents[cell.child] = number }
                parents[content.tree.rightChild] = number
            }
            defer { content.keep() }
            guard content.tree.kind != .tableInterior, !content.cells.isEmpty else { continue }
            guard var orphan = try orphan(content, gapped, &survey) else {
                survey.indexPages.insert(number)
                continue
            }
            orphan.use = try use(of: number)
            if case .tree(let root, _) = orphan.use {
                let own = orphan.tables.filter { forms.tables[$0].root == root }
                orphan.tables = own.isEmpty ? orphan.tables.filter { forms.tables[$0].root == nil } : own
            }
            orphans.append(orphan)
        }
        // If the header is lost, a free-list trunk may be among the pages that cannot be read.
        if freePages.unknown == nil, survey.untold.isEmpty { freePages.unknown = 0 }
        if freePages.unknown == nil { findings.isFreeListDamaged = true }
        orphans = Self.agreed(orphans, parents)
        let evidence = try evidence(
            for: orphans.reduce(into: Set(strays.map(\.table))) { $0.formUnion($1.tables) })
        try readStrays(evidence)
        var confirmed: [UInt32: Set<Int>] = [:]
        for index in orphans.indices {
            try judge(&orphans[index], openings, evidence)
            confirmed[orphans[index].top, default: []].formUnion(orphans[index].confirmed)
        }
        let (possible, contested) = givenTables(of: orphans, confirmed, areWhole: survey.untold.isEmpty)
        for index in orphans.indices {
            orphans[index].mayBeGiven = contested.contains(orphans[index].top)
            orphans[index].placed = orphans[index].placed.filter { table in
                forms.tables[table].root != nil || possible[orphans[index].top]?.contains(table) == true
            }
        }
        try countFreed(orphans, survey)
        try countUnknown(survey)
        // The first pass shows which values are usual in the columns of each table.
        for isLast in [false, true] {
            for orphan in orphans where owners.isUnclaimed(orphan.page) {
                try reading.checkpoint()
                guard let content = try content(orphan.page) else { continue }
                defer { content.keep() }
                let table = try table(of: orphan, content, confirmed[orphan.top] ?? [], byValues: isLast)
                guard table != nil || isLast else { continue }
                owners.claim(orphan.page, .tree)
                try read(orphan, content, table, evidence)
            }
        }
        let known = findings.tables.reduce(into: Set<UInt32>()) { $0.formUnion($1.lostPages) }
        findings.lostPages.subtract(known)
    }

    /// Returns the evidence in a page's records; `nil` for a page of an index.
    private mutating func orphan(
        _ content: borrowing PageContent, _ gapped: Set<Int>, _ survey: inout OrphanSurvey
    ) throws -> Orphan? {
        let isTable = content.tree.kind.isTable
        let candidates = forms.tables.indices.filter { forms.tables[$0].isWithoutRowID == !isTable }
        var fits = Dictionary(uniqueKeysWithValues: candidates.map { ($0, RecordShape.Fit.exact) })
        var records = 0
        for cell in content.cells {
            guard
                let fit = try? payloads.peek(
                    cell,
                    { bytes in
                        let values = try RecordReader.values(bytes, page: cell.page)
                        return fits.keys.map { ($0, shapes[$0].fit(values)) }
                    })
            else { continue }
            survey.overflow.formUnion(payloads.chain)
            records += 1
            for (table, fit) in fit where fit != .exact { fits[table] = fit == .none ? nil : .short }
        }
        guard records > 0 else { return nil }
        // The table names in its rows identify sqlite_sequence, although the rows could fit other tables, too.
        if let own = fits.keys.first(where: { forms.tables[$0].name == "sqlite_sequence" }) {
            return Orphan(page: content.number, isTable: true, tables: [own], fitting: [own])
        }
        // A short record of one table may look like a complete one of another, so both tables remain possible.
        let lacking = gapped.intersection(fits.keys)
        let tables = lacking.isEmpty ? Set(fits.keys) : lacking
        guard isTable || !tables.isEmpty else { return nil }
        return Orphan(page: content.number, isTable: isTable, tables: tables, fitting: Set(fits.keys))
    }

    /// Removes the tables that fit only some pages of a b-tree, because all pages of a b-tree belong to one table.
    private static func agreed(_ orphans: [Orphan], _ parents: [UInt32: UInt32]) -> [Orphan] {
        func top(_ orphan: Orphan) -> UInt32 {
            if case .tree(let root, _) = orphan.use { return root }
            var (page, steps) = (orphan.page, 0)
            while let parent = parents[page], steps < 20 { (page, steps) = (parent, steps + 1) }
            return page
        }
        var common: [UInt32: Set<Int>] = [:]
        for orphan in orphans { common[top(orphan), default: orphan.tables].formIntersection(orphan.tables) }
        return orphans.map { orphan in
            var orphan = orphan
            orphan.top = top(orphan)
            if let tables = common[orphan.top], !tables.isEmpty { orphan.tables = tables }
            return orphan
        }
    }

    // MARK: Evidence

    private mutating func evidence(for asked: Set<Int>) throws -> [Int: IndexEvidence] {
        guard !asked.isEmpty else { return [:] }
        var unclaimed: [UInt32] = []
        for number in 1...source.pageCount where owners.isUnclaimed(number) {
            if let content = try content(number), !content.tree.kind.isTable { unclaimed.append(number) }
        }
        // If not every free page is known, any page of an index may be free and name deleted rows. If not every table
        // is known, the page may belong to an index of an unknown table.
        let strays = try reading.mayLackTables ? [] : entries(on: unclaimed.filter { try isLiving($0, use(of: $0)) })
        var result: [Int: IndexEvidence] = [:]
        for table in asked.sorted() {
            var (whole, rest): ([Int: Set<UInt64>], Set<UInt64>) = ([:], strays)
            for (number, index) in forms.tables[table].indexes.enumerated() where index.isPlain {
                guard let map = indexes[table][number] else { continue }
                let found = try entries(on: map.pages.map(\.page))
                if findings.damagedIndexes.contains(where: { $0 == (table, number) }) {
                    rest.formUnion(found)
                } else {
                    whole[number] = found
                }
            }
            result[table] = IndexEvidence(forms.tables[table], whole: whole, rest: rest)
        }
        return result
    }

    private mutating func entries(on pages: [UInt32]) throws -> Set<UInt64> {
        var found: Set<UInt64> = []
        for page in pages {
            try reading.checkpoint()
            guard let content = try content(page) else { continue }
            defer { content.keep() }
            for cell in content.cells {
                if let print = try? payloads.peek(cell, { try RecordReader.values($0, page: page).fingerprint() }) {
                    found.insert(print)
                }
            }
        }
        return found
    }

    // MARK: Rows

    /// Uses the indexes to decide which rows are live on pages that contradict their parents.
    ///
    /// If no index decides, the rows that the parents lead to are live.
    private mutating func readStrays(_ evidence: [Int: IndexEvidence]) throws {
        for stray in strays {
            guard let content = try content(stray.place.page), let evidence = evidence[stray.table] else { continue }
            defer { content.keep() }
            for cell in content.cells {
                let answer = try? payloads.peek(cell) { bytes in
                    evidence.answer(cell.rowid, try RecordReader.values(bytes, page: cell.page))
                }
                let destination: ReadRow.Destination =
                    switch answer {
                    case .current, .named: .table(stray.table)
                    case .denied: .apart(.deleted, tables: [stray.table])
                    case .unknown, nil:
                        stray.place.contains(cell.rowid)
                            ? .table(stray.table) : .apart(.damaged, tables: [stray.table])
                    }
                if answer == .named { findings.tables[stray.table].oldRows += 1 }
                try hand(cell, content, destination)
            }
        }
    }

    /// Returns the tables with unknown roots to which each b-tree may belong, by the b-tree's topmost page.
    ///
    /// A table has one b-tree. If two b-trees remain for a table, a definition may be missing, and only b-trees that an
    /// index confirms are assigned to the table.
    ///
    /// - Parameters:
    ///   - confirmed: The tables whose indexes name rows of a b-tree, by the b-tree's topmost page.
    ///   - areWhole: Whether no page is lost that may lead to several of these b-trees.
    /// - Returns: The tables, and the b-trees that may belong to a table although it was not assigned to any.
    private func givenTables(
        of orphans: [Orphan], _ confirmed: [UInt32: Set<Int>], areWhole: Bool
    ) -> (possible: [UInt32: Set<Int>], contested: Set<UInt32>) {
        let given = Set(forms.tables.indices.filter { forms.tables[$0].root == nil })
        var possible: [UInt32: Set<Int>] = [:]
        for orphan in orphans where !orphan.mayBeIndex {
            let named = confirmed[orphan.top, default: []]
            let tables = orphan.placed.subtracting(orphan.denied).intersection(given)
            possible[orphan.top, default: []].formUnion(named.isEmpty ? tables : tables.intersection(named))
        }
        // The only candidate for one b-tree is not a candidate for the others, unless one of them may be another part of
        // the same b-tree, above which a page is lost.
        var settled: Set<Int> = []
        while areWhole {
            let single = possible.values.compactMap { $0.count == 1 ? $0.first : nil }.filter { !settled.contains($0) }
            guard let table = single.min() else { break }
            settled.insert(table)
            for (top, tables) in possible where tables.count > 1 { possible[top] = tables.subtracting([table]) }
        }
        var contested: Set<UInt32> = []
        for table in given where possible.values.filter({ $0.contains(table) }).count > 1 {
            for (top, tables) in possible where confirmed[top]?.contains(table) != true {
                if tables.contains(table) { contested.insert(top) }
                possible[top] = tables.subtracting([table])
            }
        }
        return (possible, contested)
    }

    private mutating func judge(
        _ orphan: inout Orphan, _ openings: [[TreeMap.Place]], _ evidence: [Int: IndexEvidence]
    ) throws {
        guard let content = try content(orphan.page) else { return }
        defer { content.keep() }
        orphan.mayBeIndex = !orphan.isTable && mayBeIndex(content)
        for table in orphan.tables {
            if case .tree(let root, _) = orphan.use, forms.tables[table].root == root,
                Self.holds(content, tables[table].missing)
            {
                orphan.confirmed = [table]
            }
            guard Self.holds(content, openings[table]) else { continue }
            orphan.placed.insert(table)
            guard let evidence = evidence[table] else { continue }
            let isTable = orphan.isTable
            let answers = content.cells.compactMap { cell in
                try? payloads.peek(cell) { bytes in
                    evidence.answer(isTable ? cell.rowid : nil, try RecordReader.values(bytes, page: cell.page))
                }
            }
            // A row that names its own columns in another order looks like an entry of an index, and the other way
            // round: without an undamaged index, each of the two would confirm the other.
            let isEither = orphan.mayBeIndex && !evidence.isComplete
            if !isEither, answers.contains(where: { $0 == .current || $0 == .named }) { orphan.confirmed.insert(table) }
            if !answers.isEmpty, answers.allSatisfy({ $0 == .denied }) { orphan.denied.insert(table) }
        }
    }

    /// Returns whether the b-tree of an index or of another table lacks pages.
    private func lacksPages(besides table: Int) -> Bool {
        !hasAllIndexPages || tables.indices.contains { $0 != table && !tables[$0].missing.isEmpty }
    }

    /// Returns the only table that a page can belong to; `nil` if there is no such table, or more than one.
    ///
    /// - Parameters:
    ///   - group: The tables whose indexes name rows of pages of the same b-tree.
    ///   - byValues: Whether to leave out tables whose other rows never hold values of such storage classes in their
    ///     columns.
    private mutating func table(
        of orphan: Orphan, _ content: borrowing PageContent, _ group: Set<Int>, byValues: Bool
    ) throws -> Int? {
        if !orphan.confirmed.isEmpty { return orphan.confirmed.count == 1 ? orphan.confirmed.first : nil }
        // The page may have belonged to an unknown table.
        guard !reading.mayLackTables else { return nil }
        var possible = orphan.placed.subtracting(orphan.denied)
        let named = possible.intersection(group)
        if named.count == 1 { return named.first }
        if orphan.mayBeIndex || orphan.mayBeGiven { return nil }
        if possible.count > 1, byValues {
            let usual = usual(possible, content)
            if !usual.isEmpty { possible = usual }
        }
        guard possible.count == 1, let table = possible.first else { return nil }
        // What a module's table contains may be recomputed, and then no row that is in it by mistake is kept.
        let others = ofModules.contains(table) ? orphan.fitting.subtracting(ofModules) : []
        return usual(others, content).isEmpty ? table : nil
    }

    /// Returns those of the tables whose other rows hold values of the same storage classes as a page's rows.
    private mutating func usual(_ tables: Set<Int>, _ content: borrowing PageContent) -> Set<Int> {
        let observed = observed
        return tables.filter { table in
            content.cells.allSatisfy { cell in
                (try? payloads.peek(cell) { observed[table].contains(try RecordReader.values($0, page: cell.page)) })
                    ?? true
            }
        }
    }

    /// Returns whether a b-tree lacks pages at a place where all rows of a page belong.
    ///
    /// An index page has no range of rowids, so it fits any such place.
    private static func holds(_ content: borrowing PageContent, _ places: [TreeMap.Place]) -> Bool {
        let rowids = content.tree.kind.isTable ? content.cells.map(\.rowid) : []
        return places.contains { place in rowids.allSatisfy(place.contains) }
    }

    /// Returns whether a page that no b-tree leads to is nevertheless part of one.
    private func isLiving(_ page: UInt32, _ use: LivingPointerMap.Use?) -> Bool {
        switch use {
        case .tree: true
        case .free, .overflow: false
        case nil: freePages.showInUse(page)
        }
    }

    /// Returns the use of a page according to the pointer map.
    ///
    /// The result is correct only before orphans are claimed.
    private func use(of page: UInt32) throws -> LivingPointerMap.Use? {
        try pointerMap?.use(of: page, in: source) { parent, child in
            guard owners[parent] == .tree, let content = try content(parent) else { return nil }
            defer { content.keep() }
            guard content.isWhole else { return nil }
            return !content.tree.kind.isLeaf
                && (content.tree.rightChild == child || content.cells.contains { $0.child == child })
        }
    }

    /// Counts the pages that are neither free nor part of a b-tree, if no damage to a b-tree explains them.
    private mutating func countHidden() {
        guard let header = reading.header, let unknown = freePages.unknown, isEveryTreeWhole, !reading.mayLackTables
        else { return }
        let last = min(source.pageCount, header.claimedPages.map { UInt32(clamping: $0) } ?? source.pageCount)
        guard last > 2 else { return }
        let unclaimed = (2...last).reduce(0) { [owners] in $0 + (owners.isUnclaimed($1) ? 1 : 0) }
        findings.hiddenPages = max(0, unclaimed - max(0, unknown))
    }

    /// Finds the orphans that can only be free.
    ///
    /// If these orphans account for the header's number of free pages, all other orphans are live.
    private mutating func countFreed(_ orphans: [Orphan], _ survey: OrphanSurvey) throws {
        guard let unknown = freePages.unknown, unknown > 0, !reading.mayLackTables else { return }
        var freed = hasAllIndexPages ? survey.indexPages : []
        for orphan in orphans {
            guard let content = try content(orphan.page) else { continue }
            if isFreed(orphan, content) { freed.insert(orphan.page) }
            content.keep()
        }
        if freed.count == unknown { (freePages.unknown, freePages.freed) = (0, freed) }
    }

    /// Counts the pages in use that fit no table and no index that lacks pages: their table or index is not known.
    private mutating func countUnknown(_ survey: OrphanSurvey) throws {
        guard findings.hiddenPages == 0, !reading.mayLackTables else { return }
        for page in survey.indexPages where freePages.showInUse(page) {
            guard let content = try content(page) else { continue }
            if !mayBeIndex(content) { findings.hiddenPages += 1 }
            content.keep()
        }
    }

    var hasAllIndexPages: Bool {
        indexes.allSatisfy { $0.allSatisfy { $0.map { $0.missing.isEmpty } ?? false } }
    }

    /// Returns whether a page can only be free: the pointer map shows it, or every table that the page fits has all
    /// pages at the place where the page's rows belong, or has indexes that rule these rows out.
    private func isFreed(_ orphan: Orphan, _ content: borrowing PageContent) -> Bool {
        switch orphan.use {
        case .free: return true
        case .tree, .overflow: return false
        case nil:
            guard !reading.mayLackTables, orphan.isTable || hasAllIndexPages else { return false }
            // A page that fits no table may belong to a table whose definition comes from a template.
            if orphan.tables.isEmpty, forms.tables.contains(where: \.isGiven) { return false }
            let rowids = orphan.isTable ? content.cells.map(\.rowid) : []
            return orphan.tables.subtracting(orphan.denied).allSatisfy { table in
                tables[table].missing.allSatisfy { place in orphan.isTable && !rowids.contains(where: place.contains) }
            }
        }
    }

    private mutating func read(
        _ orphan: Orphan, _ content: borrowing PageContent, _ table: Int?, _ evidence: [Int: IndexEvidence]
    ) throws {
        let isLiving = isLiving(orphan.page, orphan.use)
        guard let table, let evidence = evidence[table], isLiving || orphan.confirmed.contains(table) else {
            return try handApart(
                content, !isLiving && isFreed(orphan, content) ? .deleted : .orphaned,
                table.map { [$0] } ?? orphan.tables.sorted())
        }
        // If the list of free pages is damaged, the page may be an old version, whatever the number of free pages is. So
        // may it be if its place belongs to another b-tree, which lacks pages too. A page of the pointer map may be one
        // as well. If the number of all pages is not known, the database may not even use the page.
        let mayBeOld =
            !orphan.isUseConfirmed && (findings.isFreeListDamaged || lacksPages(besides: table))
            || !findings.isPageCountKnown
        var isAssigned = false
        if !content.isWhole { findings.tables[table].lostPages.insert(content.number) }
        for cell in content.cells {
            let answer = try? payloads.peek(cell) { bytes in
                evidence.answer(orphan.isTable ? cell.rowid : nil, try RecordReader.values(bytes, page: cell.page))
            }
            let destination: ReadRow.Destination
            switch answer {
            // If the page is live, either the page or the index is an old version.
            case .denied: destination = .apart(isLiving ? .orphaned : .deleted, tables: [table])
            // A freed page holds old versions and copies of moved rows as well as deleted rows.
            case .named where !isLiving, .unknown where !isLiving:
                destination = .apart(.orphaned, tables: [table])
            default: destination = .table(table)
            }
            var isOld = answer == .named
            if case .table = destination { (isAssigned, isOld) = (true, mayBeOld && answer != .current) }
            if isOld { findings.tables[table].oldRows += 1 }
            try hand(cell, content, destination)
        }
        if isAssigned { findings.tables[table].orphanedPages += 1 }
        for cell in content.doubtful { try hand(cell, content, .apart(.damaged, tables: [table])) }
    }

    private mutating func handApart(_ content: borrowing PageContent, _ reason: ReadRow.Reason, _ tables: [Int]) throws
    {
        for cell in content.cells { try hand(cell, content, .apart(reason, tables: tables)) }
    }

    /// Returns whether an index page may also belong to an index with gaps.
    mutating func mayBeIndex(_ content: borrowing PageContent) -> Bool {
        for table in forms.tables.indices {
            for (number, index) in forms.tables[table].indexes.enumerated() {
                guard !(indexes[table][number]?.missing.isEmpty ?? false) else { continue }
                let shape = IndexShape(index, forms.tables[table])
                let fits = content.cells.allSatisfy { cell in
                    (try? payloads.peek(cell) { shape.fits(try RecordReader.values($0, page: cell.page)) }) ?? true
                }
                if fits { return true }
            }
        }
        return false
    }
}

/// The combined evidence of the pages that nothing leads to.
private struct OrphanSurvey {
    /// Pages that cannot be read or are not b-tree pages.
    private var others: Set<UInt32> = []
    /// The overflow pages of the rows on pages that nothing leads to.
    var overflow: Set<UInt32> = []
    /// Index pages that fit no table.
    var indexPages: Set<UInt32> = []

    /// Records a page.
    ///
    /// Page 1 is omitted, because it belongs to the schema.
    mutating func add(_ page: UInt32) { if page > 1 { others.insert(page) } }

    /// Pages whose use is not known.
    var untold: Set<UInt32> { others.subtracting(overflow) }
}
