internal import CipherErrors
internal import CipherSQLite
import Testing

struct StatementTests {
    private let fixture: EngineFixture

    init() throws {
        fixture = try EngineFixture()
    }

    @Test("A statement can run inside its own loop")
    func reentrancy() throws {
        let db = try fixture.open()
        try db.executeScript("CREATE TABLE t(v); INSERT INTO t VALUES (1), (2), (3)")
        var pairs: [[Int]] = []
        try db.forEachRow("SELECT v FROM t ORDER BY v") { outer in
            let left: Int = try outer.get(at: 0)
            try db.forEachRow("SELECT v FROM t ORDER BY v") { pairs.append([left, try $0.get(at: 0)]) }
        }
        #expect(pairs == [1, 2, 3].flatMap { left in [1, 2, 3].map { [left, $0] } })
    }

    @Test("A statement keeps no value and no row of its last use")
    func cleanReuse() throws {
        let db = try fixture.open()
        try db.executeScript("CREATE TABLE t(v); INSERT INTO t VALUES (1), (2)")
        struct Stop: Error {}
        for _ in 0..<2 {
            var seen: [Int] = []
            #expect(throws: Stop.self) {
                try db.forEachRow("SELECT v FROM t ORDER BY v") { row in
                    seen.append(try row.get(at: 0))
                    throw Stop()
                }
            }
            #expect(seen == [1])
        }
        // An unfinished statement would keep the table locked.
        try db.execute("DROP TABLE t")
    }

    @Test(
        "A write of which only the first row is read throws if it cannot be committed",
        .enabled(if: Engine.current.hasReturning))
    func failingCommitOfFirstRow() throws {
        let db = try fixture.open()
        try db.executeScript(
            """
            PRAGMA foreign_keys = ON;
            CREATE TABLE parent(id INTEGER PRIMARY KEY);
            CREATE TABLE child(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
            """)
        struct Child: Codable { var id: Int, parent: Int }
        #expect(throws: DatabaseError.self) {
            try db.value(Int.self, "INSERT INTO child VALUES (1, 1) RETURNING id")
        }
        #expect(throws: DatabaseError.self) {
            try db.row(Child.self, "INSERT INTO child VALUES (2, 1) RETURNING id, parent")
        }
        #expect(throws: DatabaseError.self) { try db.exists("INSERT INTO child VALUES (3, 1) RETURNING id") }
        #expect(try db.value(Int.self, "SELECT count(*) FROM child") == 0)
    }

    @Test("A statement is cached in a cache of bounded size, which drops the least recently used one first")
    func boundedCache() throws {
        let db = try fixture.open()
        var cache = StatementCache(capacity: 2)
        for text in ["SELECT 1", "SELECT 2"] { cache.put(try Statement(SQL(text: text), on: db)) }
        let taken = cache.take("SELECT 1")
        let first = try #require(taken)
        let takenTwice = cache.take("SELECT 1")
        #expect(takenTwice == nil)
        cache.put(first)
        cache.put(try Statement("SELECT 3", on: db))
        let left = ["SELECT 1", "SELECT 2", "SELECT 3"].map { cache.take($0)?.sql }
        #expect(left == ["SELECT 1", nil, "SELECT 3"])
    }

    @Test("A statement is found in the cache by its text, however the text was composed")
    func foundByText() throws {
        let db = try fixture.open()
        var cache = StatementCache(capacity: 2)
        let name = "id"
        let same: [SQL] = [
            "SELECT \(1) AS `id`, \(2)", "SELECT \(1) AS \(identifier: name), \(2)",
            "SELECT \(1) AS \(SchemaName("id")), \(2)",
            SQL(text: "SELECT ? AS `id`, ?", values: [.integer(1), .null]),
            "SELECT \(SQL(text: "? AS `id`", values: [.null])), \(name)",
        ]
        for left in same {
            cache.put(try Statement(left, on: db))
            for right in same {
                let taken = cache.take(right)
                cache.put(try #require(taken))
            }
        }
        for other: SQL in ["", "SELECT \(1) AS `id`, ", "SELECT ? AS `id`, ? ", "SELECT \(1) AS `ie`, \(2)"] {
            #expect(cache.take(other) == nil)
        }
    }

    @Test("A statement is distinguished from one whose text differs only in Unicode normalization")
    func canonicalEquivalence() throws {
        let db = try fixture.open()
        for text in ["\u{e9}", "e\u{301}"] {
            let found = try #require(try db.value(String.self, SQL(text: "SELECT '\(text)'")))
            #expect(found.utf8.elementsEqual(text.utf8))
        }
    }

    @Test("A statement that is a pragma works each time it runs")
    func pragmas() throws {
        let db = try fixture.open()
        for mode in [0, 2, 0, 2] {
            try db.execute(SQL(text: "PRAGMA synchronous = \(mode)"))
            #expect(try db.value(Int.self, "PRAGMA synchronous") == mode)
        }
    }

    @Test("A statement is compiled again after the schema has changed")
    func changedSchema() throws {
        struct Person: Codable, Equatable {
            var name: String
            var city: String
        }
        let db = try fixture.open()
        try db.executeScript("CREATE TABLE t(name, city); INSERT INTO t VALUES ('ana', 'Quito')")
        let all: SQL = "SELECT * FROM t"
        #expect(try db.rows(Person.self, all) == [Person(name: "ana", city: "Quito")])
        try db.executeScript("DROP TABLE t; CREATE TABLE t(city, age, name); INSERT INTO t VALUES ('Quito', 3, 'ana')")
        #expect(try db.rows(Person.self, all) == [Person(name: "ana", city: "Quito")])
    }

    @Test("A statement must be the only one in its text, because another one would be ignored")
    func severalStatements() throws {
        let db = try fixture.open()
        try db.execute("CREATE TABLE t(v)")
        #expect(try databaseError { try db.execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)") }.code == 21)
        #expect(try databaseError { try db.execute("") }.code == 21)
        #expect(try databaseError { try db.execute("-- nothing") }.code == 21)
        #expect(try databaseError { try db.execute(SQL(text: "SELECT 1\0; DROP TABLE t")) }.code == 21)
        #expect(try databaseError { try db.executeScript("SELECT 1;\0 DROP TABLE t") }.code == 21)
        #expect(try db.value(Int.self, "SELECT count(*) FROM t") == 0)
        try db.execute("INSERT INTO t VALUES (1); -- one\n ; ")
        #expect(try db.value(Int.self, "SELECT count(*) FROM t") == 1)
    }

    @Test("A statement that fails in a script is named, and the statements before it have run")
    func script() throws {
        let db = try fixture.open()
        let error = try databaseError {
            try db.executeScript(
                "CREATE TABLE t(v); /* ; */ INSERT INTO t VALUES (';'); INSERT INTO u VALUES (2); SELECT 1")
        }
        #expect(error.message == "no such table: u")
        #expect(try db.values(String.self, "SELECT v FROM t") == [";"])
        try db.executeScript("")
        try db.executeScript(" ; -- nothing\n")
    }

    @Test("A statement that violates a constraint reports the kind of constraint")
    func constraints() throws {
        let db = try fixture.open()
        try db.executeScript(
            """
            PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY, u UNIQUE, n NOT NULL DEFAULT 1,
                c CHECK (c > 0)); CREATE TABLE f(p REFERENCES p(id)); INSERT INTO p(id, u) VALUES (1, 'a');
            CREATE TABLE w(k PRIMARY KEY); INSERT INTO w(rowid, k) VALUES (1, 'k')
            """)
        let cases: [(String, KeyPath<DatabaseError, Bool>)] = [
            ("INSERT INTO p(id) VALUES (1)", \.isUniqueViolation),
            ("INSERT INTO p(u) VALUES ('a')", \.isUniqueViolation),
            ("INSERT INTO w(k) VALUES ('k')", \.isUniqueViolation),
            ("INSERT INTO w(rowid) VALUES (1)", \.isUniqueViolation),
            ("INSERT INTO p(n) VALUES (NULL)", \.isNotNullViolation),
            ("INSERT INTO p(c) VALUES (-1)", \.isCheckViolation),
            ("INSERT INTO f VALUES (9)", \.isForeignKeyViolation),
        ]
        let kinds: [KeyPath<DatabaseError, Bool>] = [
            \.isUniqueViolation, \.isNotNullViolation, \.isCheckViolation, \.isForeignKeyViolation,
        ]
        for (sql, kind) in cases {
            let error = try databaseError { try db.execute(SQL(text: sql)) }
            #expect(error.isConstraintViolation && error[keyPath: kind], "\(sql)")
            #expect(kinds.filter { error[keyPath: $0] }.count == 1)
        }
    }

    @Test("A statement reports the row that it inserted and the number of rows that it changed")
    func effects() throws {
        let db = try fixture.open()
        try db.execute("CREATE TABLE t(v)")
        try db.execute("INSERT INTO t(rowid, v) VALUES (\(Int64.max), 1), (41, 2)")
        #expect(db.lastInsertedRowID == 41)
        try db.execute("UPDATE t SET v = 0")
        #expect(db.changes == 2)
    }
}
