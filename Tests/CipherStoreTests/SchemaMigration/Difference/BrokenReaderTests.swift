internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

/// Full-text indexes that read the text of their rows from another table.
struct BrokenReaderTests {
    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var table = "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT)"
        var index = "CREATE VIRTUAL TABLE fts USING fts4(content=\"t\", title)"
        var wanted: String
        var tables: [String: String] = [:]
        var columns: [String: String] = [:]
        /// The finding; `nil` if nothing breaks.
        var finding: String?
    }

    static let changes = always + (hasFTS5 ? namedRowIDs : [])

    private static let always = [
        Change(
            testDescription: "a column is renamed", wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, caption TEXT)",
            columns: ["caption": "title"],
            finding: "the virtual table fts reads t.title, which the migration renames to caption"),
        Change(
            testDescription: "the table is renamed", wanted: "CREATE TABLE u(id INTEGER PRIMARY KEY, title TEXT)",
            tables: ["u": "t"], finding: "the virtual table fts reads t, which the migration renames to u"),
        Change(
            testDescription: "a column takes the name of the rowid",
            table: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, x INT)",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, rowid INT)", columns: ["rowid": "x"],
            finding: "the virtual table fts finds the rows of t by rowid, which the migration replaces with the "
                + "values of rowid"),
        Change(
            testDescription: "the column with the name of the rowid is renamed",
            table: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, rowid INT)",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, x INT)", columns: ["x": "rowid"],
            finding: "the virtual table fts reads t.rowid, which the migration renames to x"),
        Change(
            testDescription: "an empty column is replaced with another one",
            table: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, old TEXT DEFAULT 'plum')",
            index: "UPDATE t SET title = NULL; CREATE VIRTUAL TABLE fts USING fts4(content=\"t\", title)",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT)", columns: ["title": "old"],
            finding: "the virtual table fts reads t.title, which the migration replaces with the values of old"),
        Change(
            testDescription: "an empty table is replaced with another one",
            index: "CREATE TABLE u(id INTEGER PRIMARY KEY, title TEXT); "
                + "CREATE VIRTUAL TABLE fts USING fts4(content=\"u\", title)",
            wanted: "CREATE TABLE u(id INTEGER PRIMARY KEY, title TEXT)", tables: ["u": "t"],
            finding: "the virtual table fts reads u, which the migration replaces with t"),
        Change(
            testDescription: "the rowids change", table: "CREATE TABLE t(id INT PRIMARY KEY, title TEXT)",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT)",
            finding: "the virtual table fts finds the rows of t by rowid, which the migration replaces with the "
                + "values of id"),
        Change(
            testDescription: "the rowids are removed",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT) WITHOUT ROWID",
            finding: "the virtual table fts finds the rows of t by rowid, which the migration removes"),
        Change(
            testDescription: "a new column is named like the rowid",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, RowID INTEGER)",
            finding: "the virtual table fts finds the rows of t by rowid, which the migration replaces with the "
                + "values of RowID"),
        Change(
            testDescription: "a new column has a name of the rowid that the index does not use",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, oid INTEGER)"),
        Change(
            testDescription: "an R-tree has a column of the table's name",
            index: "CREATE VIRTUAL TABLE r USING rtree(i, t, u)",
            wanted: "CREATE TABLE u(id INTEGER PRIMARY KEY, title TEXT)", tables: ["u": "t"]),
        Change(
            testDescription: "a column that only the table has is renamed",
            table: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, n)",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, number)", columns: ["number": "n"]),
        Change(
            testDescription: "the index has its own rows", index: "CREATE VIRTUAL TABLE fts USING fts4(t, title)",
            wanted: "CREATE TABLE u(id INTEGER PRIMARY KEY, caption TEXT)", tables: ["u": "t"],
            columns: ["caption": "title"]),
        Change(
            testDescription: "the table is rebuilt with the same rowids",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT NOT NULL DEFAULT '')"),
    ]

    private static let namedRowIDs = [
        Change(
            testDescription: "the rowids that the index names are removed",
            index: "CREATE VIRTUAL TABLE fts USING fts5(title, content='t', content_rowid='rowid')",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT) WITHOUT ROWID",
            finding: "the virtual table fts finds the rows of t by rowid, which the migration removes"),
        Change(
            testDescription: "a new column has the name by which the index finds the rowids",
            index: "CREATE VIRTUAL TABLE fts USING fts5(title, content='t', content_rowid='oid')",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT NOT NULL DEFAULT '', oid INTEGER)",
            finding: "the virtual table fts finds the rows of t by rowid, which the migration replaces with the "
                + "values of oid"),
        Change(
            testDescription: "a column takes the name by which the index finds the rowids",
            table: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, x INT)",
            index: "CREATE VIRTUAL TABLE fts USING fts5(title, content='t', content_rowid='oid')",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, oid INT)", columns: ["oid": "x"],
            finding: "the virtual table fts finds the rows of t by rowid, which the migration replaces with the "
                + "values of oid"),
        Change(
            testDescription: "the primary key takes the name by which the index finds the rowids",
            index: "CREATE VIRTUAL TABLE fts USING fts5(title, content='t', content_rowid=\"oid\")",
            wanted: "CREATE TABLE t(oid INTEGER PRIMARY KEY, title TEXT)", columns: ["oid": "id"]),
        Change(
            testDescription: "the rowids are removed, but the index finds the rows by a column",
            index: "CREATE VIRTUAL TABLE fts USING fts5(title, content='t', content_rowid='ID')",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT) WITHOUT ROWID"),
    ]
    private static let hasFTS5 =
        (try? Connection(inMemoryWith: []).executeScript("CREATE VIRTUAL TABLE f USING fts5(a)")) != nil

    private func fixture(_ change: Change) throws -> MigrationFixture {
        try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "\(change.table); INSERT INTO t(id, title) VALUES (20, 'apple'), (1, 'pear'); \(change.index);")
    }

    private func source(_ change: Change, _ policy: DestructiveChanges) -> WantedSource {
        var source = WantedSource(statements: [change.wanted], policy: policy)
        for (new, old) in change.tables { source.renames.tables[SQLName(new)] = old }
        for (new, old) in change.columns {
            source.renames.columns[SQLName(change.tables.keys.first ?? "t"), default: [:]][SQLName(new)] = old
        }
        return source
    }

    @Test("A change that breaks a full-text index of the table's rows is named by default", arguments: changes)
    func namesBroken(change: Change) throws {
        let fixture = try fixture(change)
        let report = try fixture.launch(source(change, .withhold))
        #expect(report.findings.map(\.message) == (change.finding.map { [$0] } ?? []))
        #expect(report.findings.allSatisfy { $0.severity == .removesSchema })
        #expect(try fixture.launch(source(change, .withhold)).applied.isEmpty)
    }

    @Test("Each of two full-text indexes that a change breaks in its own way is named", .enabled(if: hasFTS5))
    func twoIndexes() throws {
        let change = Change(
            testDescription: "", table: "CREATE TABLE t(id INT PRIMARY KEY, title TEXT)",
            index: "CREATE VIRTUAL TABLE fts USING fts4(content=\"t\", title); "
                + "CREATE VIRTUAL TABLE other USING fts5(title, content='t', content_rowid='oid')",
            wanted: "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, oid INTEGER)")
        let report = try fixture(change).launch(source(change, .withhold))
        #expect(
            report.findings.map(\.message).sorted()
                == [("fts", "id"), ("other", "oid")].map { index, column in
                    "the virtual table \(index) finds the rows of t by rowid, which the migration replaces with the "
                        + "values of \(column)"
                })
    }

    @Test(
        "A change that breaks a full-text index of the table's rows is refused under the policy refuse",
        arguments: changes)
    func refusesBroken(change: Change) throws {
        let fixture = try fixture(change)
        guard let finding = change.finding else {
            try fixture.launch(source(change, .refuse))
            return
        }
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(source(change, .refuse)) }
        #expect(error?.code == .destructiveChanges)
        #expect(error?.detail.contains(finding) == true)
        #expect(try fixture.bytes() == before)
    }
}
