internal import CipherSQLite
import CipherTestSupport
import Testing

/// Virtual tables with their shadow tables, loaded or not.
struct ModuleHazardTests {
    @Test("Virtual tables are converted with their shadow tables", arguments: Self.modules)
    func encryptModule(hazard: Hazard) throws {
        try hazard.run()
    }

    @Test(
        "FTS5 tables are converted with their shadow tables",
        .enabled(if: Engine.current.wasBuilt(with: "ENABLE_FTS5")),
        arguments: Self.fts5)
    func fullText5(hazard: Hazard) throws {
        try hazard.run()
    }

    @Test("A full-text index over another table's rows still finds them")
    func search() throws {
        let file = try Self.externalContent.run()
        let found = try file.read(key: TestKeys.raw()) {
            try $0.values(
                Int64.self, "SELECT doc.rowid FROM ft JOIN doc ON doc.rowid = ft.docid WHERE ft MATCH 'beta' ORDER BY 1"
            )
        }
        #expect(found == [3, 90])
    }

    private static let externalContent: Hazard = Hazard(
        "external content",
        """
        CREATE TABLE doc(body TEXT);
        INSERT INTO doc(rowid, body) VALUES (3, 'alpha beta'), (90, 'beta gamma'), (-4, 'gamma delta');
        CREATE VIRTUAL TABLE ft USING fts4(content="doc", body);
        INSERT INTO ft(ft) VALUES ('rebuild');
        """)

    private static let modules: [Hazard] = [
        Hazard(
            "FTS3, FTS4 and its options",
            """
            CREATE VIRTUAL TABLE f3 USING fts3(a, b); INSERT INTO f3(docid, a, b) VALUES (-5, 'one two', 'three'), (70, 'two', x'00');
            CREATE VIRTUAL TABLE f4 USING fts4(a, tokenize=porter, prefix="2,3", order=desc);
            INSERT INTO f4(a) VALUES ('running runs'), ('ran'); DELETE FROM f4 WHERE docid = 1;
            CREATE VIRTUAL TABLE empty USING fts4(content="", a); INSERT INTO empty(docid, a) VALUES (9, 'contentless');
            CREATE VIRTUAL TABLE terms USING fts4aux(f4);
            """),
        Hazard(
            "R*Tree",
            "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, y0, y1); CREATE VIRTUAL TABLE i USING rtree_i32(id, a, b);"
                + "INSERT INTO r VALUES (5, 1, 2, 3, 4), (-9, 0.1, 0.2, 5, 6); INSERT INTO i VALUES (1, -5, 2147483647);"
        ),
        Hazard("modules and tokenizers that only the app has") { connection in
            try connection.executeScript(
                text: "CREATE TABLE t(a); INSERT INTO t(rowid, a) VALUES (-8, 1); "
                    + "CREATE VIRTUAL TABLE f USING fts4(a); INSERT INTO f(docid, a) VALUES (44, 'word');")
            try connection.editSchema(
                """
                UPDATE sqlite_master SET sql = 'CREATE VIRTUAL TABLE f USING fts4(a, tokenize=app_tokenizer)' WHERE name = 'f';
                INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql)
                    VALUES ('table', 'm', 'm', 0, 'CREATE VIRTUAL TABLE m USING app_module(a, "b c", d=1)')
                """)
        },
        Hazard("a virtual table that has lost its shadow tables") { connection in
            try connection.executeScript("CREATE VIRTUAL TABLE f USING fts4(a); INSERT INTO f VALUES ('word');")
            // With rows on a page that nothing leads to, the original would be kept.
            try connection.execute("DELETE FROM f_stat")
            try connection.editSchema("DELETE FROM sqlite_master WHERE name = 'f_stat' OR name = 'f'")
        },
    ]

    private static let fts5: [Hazard] = [
        Hazard(
            "own, contentless and external content",
            """
            CREATE VIRTUAL TABLE f USING fts5(a, b UNINDEXED, tokenize = 'porter unicode61', prefix = '2 3');
            INSERT INTO f(rowid, a, b) VALUES (-5, 'running runs', 1), (70, 'ran', x'00'); DELETE FROM f WHERE rowid = 70;
            CREATE VIRTUAL TABLE n USING fts5(a, content = ''); INSERT INTO n(rowid, a) VALUES (9, 'contentless');
            CREATE TABLE doc(body TEXT, at INT); INSERT INTO doc(rowid, body, at) VALUES (3, 'alpha', 1), (90, 'beta', 2);
            CREATE VIRTUAL TABLE x USING fts5(body, content = 'doc', content_rowid = 'rowid'); INSERT INTO x(x) VALUES ('rebuild');
            CREATE VIRTUAL TABLE v USING fts5vocab(f, 'row');
            """),
        Hazard("a tokenizer that only the app has") { connection in
            try connection.executeScript(
                "CREATE VIRTUAL TABLE f USING fts5(a); INSERT INTO f(rowid, a) VALUES (44, 'word');")
            try connection.editSchema(
                "UPDATE sqlite_master SET sql = 'CREATE VIRTUAL TABLE f USING fts5(a, tokenize=app_tokenizer)' WHERE name = 'f'"
            )
        },
    ]
}
