internal import CipherRecovery
internal import CipherSQLite

/// Creates the report of a recovery from its findings and results.
struct RecoverySummary {
    private let recovered: RecoveredDatabase
    private let findings: ReadingFindings
    private let forms: SchemaForms
    private let hasTemplate: Bool

    init(_ recovered: RecoveredDatabase, _ findings: ReadingFindings, _ forms: SchemaForms, hasTemplate: Bool) {
        self.recovered = recovered
        self.findings = findings
        self.forms = forms
        self.hasTemplate = hasTemplate
    }

    func report(path: String, source: String) -> RecoveryReport {
        let tables = forms.tables.indices.map(table)
        return RecoveryReport(
            path: path, source: source, complete: isComplete, tables: tables, lostAndFound: lostAndFound,
            lostPages: findings.lostPages.map(Int.init).sorted(), notes: notes,
            rows: tables.reduce(0) { $0 + $1.rows }, bytesBefore: 0, bytesAfter: 0, seconds: 0)
    }

    /// Whether the damaged file shows that no row is missing, and that no row is an old version.
    private var isComplete: Bool {
        forms.rejected.isEmpty && recovered.generalNotes.isEmpty && !recovered.hasDuplicates
            && recovered.apartCounts[.orphaned, default: 0] == 0 && recovered.apartCounts[.damaged, default: 0] == 0
            && !findings.isSchemaDamaged && !findings.isHeaderLost && findings.missingPages == 0
            && findings.hiddenPages == 0 && !findings.sharesPages && !findings.contradictsHeader
            && forms.tables.indices.allSatisfy(hasAllRows)
    }

    /// Returns whether the damaged file shows that every row of a table was recovered.
    ///
    /// An index shows this only if it refers to exactly the rows that were found. Otherwise, the table or the index is an
    /// old version.
    private func hasAllRows(_ number: Int) -> Bool {
        let found = findings.tables[number]
        guard !recovered.rebuilt.contains(number) else { return !mayLackSetting(number) }
        return found.oldRows == 0 && !found.isDisordered
            && (found.indexedRows == nil ? found.lostPages.isEmpty : found.isConfirmed)
    }

    private func mayLackSetting(_ number: Int) -> Bool {
        recovered.holdsSetting.contains(number) && !findings.tables[number].lostPages.isEmpty
    }

    private var lostAndFound: RecoveryReport.LostAndFound? {
        guard recovered.apartRows > 0 else { return nil }
        return RecoveryReport.LostAndFound(
            name: recovered.apartName.description, orphanedRows: recovered.apartCounts[.orphaned, default: 0],
            deletedRows: recovered.apartCounts[.deleted, default: 0],
            damagedRows: recovered.apartCounts[.damaged, default: 0])
    }

    private func table(_ number: Int) -> RecoveryReport.Table {
        let (form, found) = (forms.tables[number], findings.tables[number])
        var notes: [String] = []
        if recovered.rebuilt.contains(number) {
            notes.append("the content of this table was recomputed from the text of its full-text table")
        }
        if mayLackSetting(number) {
            notes.append("the setting automerge of the full-text table may be lost; if the app sets it, set it again")
        }
        if form.isGiven {
            notes.append("the definition of this table was taken from the template or the configuration")
        }
        if found.lostRows > 0 {
            notes.append("\(Self.counted(found.lostRows, "row")) on readable pages could not be read completely")
        }
        if found.orphanedPages > 0 {
            notes.append(
                "this table was assigned the rows on \(Self.counted(found.orphanedPages, "page")) that no other "
                    + "page refers to")
        }
        if !found.lostPages.isEmpty || found.lacksRows || !found.isConfirmed, let indexed = found.indexedRows,
            !recovered.rebuilt.contains(number)
        {
            let missing = indexed - recovered.counts[number]
            notes.append(
                missing > 0
                    ? "according to an undamaged index, \(Self.counted(missing, "row")) \(missing == 1 ? "is" : "are") "
                        + "missing from this table"
                    : found.isConfirmed
                        ? "according to an undamaged index, no rows are missing from this table"
                        : "an undamaged index refers to other rows than those of this table, so one of the two is an "
                            + "old version")
        }
        if found.oldRows > 0 {
            notes.append(
                "\(Self.counted(found.oldRows, "row")) may be old versions, because nothing shows that the pages of "
                    + "these rows are in use and up to date, and the undamaged indexes do not contain all of their "
                    + "values")
        }
        if found.isDisordered {
            notes.append("the keys of this table are not in order, so one of its pages is an old version")
        }
        if recovered.sequencesMade.contains(number) {
            notes.append("the AUTOINCREMENT counter of this table was set to the largest rowid")
        }
        for (table, index) in findings.damagedIndexes where table == number {
            notes.append("the index \(form.indexes[index].name) was damaged and was rebuilt from the rows")
        }
        return RecoveryReport.Table(
            name: form.name.description, rows: recovered.counts[number],
            lostPages: found.lostPages.map(Int.init).sorted(), notes: notes + recovered.notes[number, default: []])
    }

    private var notes: [String] {
        var notes: [String] = []
        if findings.isSchemaDamaged {
            notes.append(
                hasTemplate
                    ? "pages or entries of the schema are damaged; the missing definitions were taken from the template "
                        + "or the configuration"
                    : "pages or entries of the schema are damaged; if the definition of a table is lost, its rows are "
                        + "in the table \(recovered.apartName). To assign these rows to their tables, recover again with a "
                        + "configuration or a template (an undamaged database with the same schema)")
        }
        if findings.missingPages > 0 {
            notes.append(
                "the file is truncated: \(Self.counted(findings.missingPages, "page")) counted in its header "
                    + "\(findings.missingPages == 1 ? "is" : "are") missing")
        }
        if findings.isHeaderLost {
            notes.append(
                "the header of the damaged database is lost, so its number of pages, user_version and application_id "
                    + "are unknown")
        }
        if findings.hiddenPages > 0 {
            let isOne = findings.hiddenPages == 1
            notes.append(
                "\(Self.counted(findings.hiddenPages, "page")) \(isOne ? "is" : "are") neither free nor part of a table "
                    + "or an index, so another page may be an old version, and rows may be missing")
        }
        if findings.sharesPages {
            notes.append(
                "a page has two uses: two of the tables, indexes and rows and the list of free pages lead to it, so one "
                    + "of the two is an old version")
        }
        if findings.contradictsHeader {
            notes.append(
                "the header states another number of pages or of free pages than the database has, so page 1 or another "
                    + "page is an old version, and tables may be missing")
        }
        if findings.isFreeListDamaged { notes.append("the list of free pages is damaged") }
        for rejected in forms.rejected {
            notes.append(
                "the definition of \(rejected.entry.type) \(rejected.entry.name) could not be read and was left out: "
                    + rejected.reason)
        }
        return notes + recovered.generalNotes
    }

    private static func counted(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }
}
