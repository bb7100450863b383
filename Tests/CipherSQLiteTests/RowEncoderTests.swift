internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

struct RowEncoderTests {
    private struct Note: Codable, Equatable, Sendable {
        var id: Int64?
        var title: String
        var body: String?
    }

    private static func connection(_ schema: String) throws -> Connection {
        let connection = try Connection(inMemoryWith: [])
        try connection.executeScript(text: schema)
        return connection
    }

    private static let schema =
        "CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT DEFAULT 'none')"

    @Test("An inserted value gets the key that SQLite chose, and is read back unchanged")
    func insert() throws {
        let db = try Self.connection(Self.schema)
        let id = try db.insert(Note(id: nil, title: "a", body: "b"), into: "note")
        #expect(id == 1)
        #expect(try db.insert(Note(id: 7, title: "c", body: nil), into: "note") == 7)
        #expect(
            try db.rows(Note.self, "SELECT * FROM note ORDER BY id")
                == [Note(id: 1, title: "a", body: "b"), Note(id: 7, title: "c", body: nil)])
    }

    @Test("A nil property is stored as NULL, and a column without a property gets its default")
    func defaults() throws {
        struct Title: Encodable { var title: String }
        let db = try Self.connection(Self.schema)
        try db.insert(Note(title: "nil"), into: "note")
        try db.insert(Title(title: "left out"), into: "note")
        #expect(try db.values(String?.self, "SELECT body FROM note ORDER BY id") == [nil, "none"])
    }

    @Test("An insert can return the stored row, with its key and its defaults")
    func returning() throws {
        struct Title: Encodable { var title: String }
        let db = try Self.connection(Self.schema)
        let note = try db.insert(Title(title: "t"), into: "note", returning: Note.self)
        #expect(note == Note(id: 1, title: "t", body: "none"))
    }

    @Test("An update changes only the row with the value's key, and returns whether it exists")
    func update() throws {
        let db = try Self.connection(Self.schema)
        try db.insert(Note(id: 1, title: "a", body: "b"), into: "note")
        try db.insert(Note(id: 2, title: "c", body: "d"), into: "note")
        #expect(try db.update(Note(id: 1, title: "A", body: nil), in: "note"))
        #expect(try !db.update(Note(id: 3, title: "X", body: nil), in: "note"))
        #expect(
            try db.rows(Note.self, "SELECT * FROM note ORDER BY id")
                == [Note(id: 1, title: "A", body: nil), Note(id: 2, title: "c", body: "d")])
    }

    @Test("An upsert inserts or updates the row, and keeps columns without a property")
    func upsert() throws {
        let db = try Self.connection(Self.schema + "; ALTER TABLE note ADD COLUMN stars INTEGER DEFAULT 5")
        try db.upsert(Note(id: 1, title: "a"), into: "note")
        try db.execute("UPDATE note SET stars = 3")
        try db.upsert(Note(id: 1, title: "b"), into: "note")
        try db.upsert(Note(id: nil, title: "c"), into: "note")
        #expect(try db.values(String.self, "SELECT title || stars FROM note ORDER BY id") == ["b3", "c5"])
    }

    @Test("An upsert that violates another unique column throws, and both rows stay unchanged")
    func upsertConflict() throws {
        struct Tag: Codable { var id: Int, name: String }
        let db = try Self.connection("CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
        try db.upsert(Tag(id: 1, name: "a"), into: "tag")
        try db.upsert(Tag(id: 2, name: "b"), into: "tag")
        let error = try #require(throws: DatabaseError.self) { try db.upsert(Tag(id: 2, name: "a"), into: "tag") }
        #expect(error.code == 19)
        #expect(try db.values(String.self, "SELECT id || name FROM tag ORDER BY id") == ["1a", "2b"])
    }

    @Test("A key of several columns identifies the row, in any order and letter case")
    func compositeKey() throws {
        struct Member: Codable { var team: String, PERSON: Int, role: String? }
        let db = try Self.connection(
            "CREATE TABLE member(role TEXT, person INTEGER, team TEXT, PRIMARY KEY(team, person)) WITHOUT ROWID")
        try db.insert(Member(team: "a", PERSON: 1, role: "x"), into: "member")
        try db.insert(Member(team: "a", PERSON: 2, role: "y"), into: "member")
        #expect(try db.update(Member(team: "a", PERSON: 2, role: nil), in: "member"))
        try db.upsert(Member(team: "b", PERSON: 1, role: "z"), into: "member")
        #expect(try db.delete(Member(team: "a", PERSON: 1, role: "whatever"), from: "member"))
        #expect(try !db.delete(Member(team: "c", PERSON: 1, role: nil), from: "member"))
        #expect(
            try db.values(String.self, "SELECT team || person || coalesce(role, '-') FROM member ORDER BY 1")
                == ["a2-", "b1z"])
    }

    @Test("A row whose columns all belong to the key can be upserted and found")
    func allKey() throws {
        struct Pair: Codable { var a: Int, b: Int }
        let db = try Self.connection("CREATE TABLE pair(a, b, PRIMARY KEY(a, b))")
        try db.upsert(Pair(a: 1, b: 2), into: "pair")
        try db.upsert(Pair(a: 1, b: 2), into: "pair")
        #expect(try db.update(Pair(a: 1, b: 2), in: "pair"))
        #expect(try db.value(Int.self, "SELECT count(*) FROM pair") == 1)
    }

    @Test("Tables and columns may have any name")
    func names() throws {
        struct Odd: Codable, Equatable {
            var key: Int, value: String
            enum CodingKeys: String, CodingKey {
                case key = "or\"der"
                case value = "a `b` c"
            }
        }
        let db = try Self.connection(#"CREATE TABLE "my ""table`"("or""der" INTEGER PRIMARY KEY, "a `b` c" TEXT)"#)
        try db.insert(Odd(key: 1, value: "x"), into: "my \"table`")
        #expect(try db.update(Odd(key: 1, value: "y"), in: "my \"table`"))
        #expect(try db.row(Odd.self, #"SELECT * FROM "my ""table`""#) == Odd(key: 1, value: "y"))
    }

    // MARK: Types of columns

    private struct Everything: Codable, Equatable {
        enum Mood: String, Codable { case calm, cross }
        enum Level: Int, Codable { case low = 1, high }
        struct Address: Codable, Equatable { var street: String, floor: Int? }

        var id: Int
        var flag: Bool, small: Int8, unsigned: UInt32, large: UInt64, real: Double, single: Float
        var mood: Mood, level: Level?
        var uuid: UUID, date: Date, data: Data, url: URL, price: Decimal
        var tags: [String], counts: [String: Int], address: Address?, former: [Address]
        var missing: Address?, twice: Int??

        static func value() throws -> Everything {
            Everything(
                id: 1, flag: true, small: -8, unsigned: .max, large: 1 << 62, real: 0.1, single: 0.5, mood: .cross,
                level: .high, uuid: try #require(UUID(uuidString: "0D9C1B2E-7F3A-4C11-9F00-6E0C4B2A9D10")),
                date: Date(timeIntervalSince1970: 1_700_000_000.125), data: Data([0, 255, 1]),
                url: try #require(URL(string: "https://example.org/a?b=c%20d")),
                price: try #require(Decimal(string: "19.9900000000000000001")),
                tags: ["a", "ü\"'"], counts: ["b": 2, "a": 1], address: Address(street: "Main", floor: nil),
                former: [Address(street: "Old", floor: 3)], missing: nil, twice: nil)
        }
    }

    private static let everything = """
        CREATE TABLE e(id INTEGER PRIMARY KEY, flag, small, unsigned, large, real, single, mood, level, uuid, date, data, url,
            price, tags, counts, address, former, missing, twice)
        """

    @Test("Every type of property is read back unchanged, in each form", arguments: ColumnForms.DateForm.allCases)
    func types(_ dates: ColumnForms.DateForm) throws {
        let db = try Self.connection(Self.everything)
        let value = try Everything.value()
        for uuids in ColumnForms.UUIDForm.allCases {
            db.columnForms = ColumnForms(dates: dates, uuids: uuids)
            try db.upsert(value, into: "e")
            #expect(try db.row(Everything.self, "SELECT * FROM e") == value)
            #expect(
                try db.exists(
                    "SELECT * FROM e WHERE uuid = \(value.uuid) AND date = \(value.date)"))
            #expect(try db.exists("SELECT * FROM e WHERE date IN (\(list: [value.date]))"))
        }
    }

    @Test("A date is read back unchanged from a column of any type", arguments: ColumnForms.DateForm.allCases)
    func affinities(_ dates: ColumnForms.DateForm) throws {
        let db = try Self.connection("CREATE TABLE d(a TEXT, b REAL, c INTEGER, d DATETIME, e BLOB, f TIMESTAMP)")
        db.columnForms = ColumnForms(dates: dates)
        for seconds in [1_700_000_000.125, 0, -12.5] {
            let date = Date(timeIntervalSince1970: seconds)
            for column in ["a", "b", "c", "d", "e", "f"] {
                try db.execute("DELETE FROM d")
                try db.execute("INSERT INTO d(\(identifier: column)) VALUES (\(date))")
                #expect(try db.value(Date.self, "SELECT \(identifier: column) FROM d") == date, "\(column) \(seconds)")
            }
        }
    }

    @Test("Dates and UUIDs are stored in the form that is set")
    func forms() throws {
        let db = try Self.connection(Self.everything)
        let value = try Everything.value()
        func stored(_ forms: ColumnForms) throws -> [Value] {
            db.columnForms = forms
            try db.upsert(value, into: "e")
            var values: [Value] = []
            try db.forEachRow("SELECT date, uuid FROM e") { values = [$0.value(at: 0), $0.value(at: 1)] }
            return values
        }
        let text = "0D9C1B2E-7F3A-4C11-9F00-6E0C4B2A9D10"
        let bytes: [UInt8] = [13, 156, 27, 46, 127, 58, 76, 17, 159, 0, 110, 12, 75, 42, 157, 16]
        #expect(try stored(ColumnForms()) == [.real(1_700_000_000.125), .text(text)])
        #expect(
            try stored(ColumnForms(dates: .millisecondsSince1970, uuids: .blob))
                == [.integer(1_700_000_000_125), .blob(bytes)])
        #expect(try stored(ColumnForms(dates: .secondsSince2001)) == [.real(721_692_800.125), .text(text)])
        #expect(try stored(ColumnForms(dates: .text)) == [.text("2023-11-14 22:13:20.125"), .text(text)])
        #expect(try stored(ColumnForms(dates: .textWithT)) == [.text("2023-11-14T22:13:20.125"), .text(text)])
    }

    @Test(
        "Dates written as text by other libraries are read",
        arguments: [
            "2023-11-14 22:13:20.125", "2023-11-14T22:13:20.125", "2023-11-14 22:13:20.125Z",
            "2023-11-14T23:13:20.125+01:00",
        ])
    func dateTexts(_ text: String) throws {
        let db = try Self.connection("")
        #expect(try db.value(Date.self, "SELECT \(text)") == Date(timeIntervalSince1970: 1_700_000_000.125))
    }

    @Test(
        "Dates without fractions of a second or without a time are read",
        arguments: ["2023-11-14 00:00:00", "2023-11-14"])
    func days(_ text: String) throws {
        #expect(
            try Self.connection("").value(Date.self, "SELECT \(text)") == Date(timeIntervalSince1970: 1_699_920_000))
    }

    @Test(
        "Text that is not a date and a blob that is not a UUID throw",
        arguments: ["yesterday", "2023-13-14", "2023-11-14 noon", ""])
    func noDate(_ text: String) throws {
        let db = try Self.connection("")
        #expect(throws: DatabaseError.self) { try db.value(Date.self, "SELECT \(text)") }
        #expect(throws: DatabaseError.self) { try db.value(UUID.self, "SELECT x'0102'") }
        #expect(throws: DatabaseError.self) { try db.value(Decimal.self, "SELECT '12,5 EUR'") }
    }

    // MARK: Structures

    private struct Author: Codable, Equatable { var id: Int, name: String? }
    private struct Book: Codable, Equatable { var title: String, author: Author? }

    @Test(
        "A structure is decoded from the columns with its property's prefix, and is nil if they are all NULL",
        arguments: ["title", "book.*"])
    func joins(_ columns: String) throws {
        let db = try Self.connection(
            """
            CREATE TABLE author(id INTEGER PRIMARY KEY, name); CREATE TABLE book(title, author);
            INSERT INTO author VALUES (1, 'Ann'), (2, NULL); INSERT INTO book VALUES ('a', 1), ('b', 2), ('c', NULL), ('d', 3);
            """)
        let books = try db.rows(
            Book.self,
            """
            SELECT \(SQL(text: columns)), author.id AS `author.id`, author.name AS `author.name`
            FROM book LEFT JOIN author ON author.id = book.author ORDER BY title
            """)
        #expect(
            books == [
                Book(title: "a", author: Author(id: 1, name: "Ann")),
                Book(title: "b", author: Author(id: 2, name: nil)),
                Book(title: "c", author: nil),
                Book(title: "d", author: nil),
            ])
    }

    @Test("A column without JSON, or with JSON of another type, throws an error that names the column")
    func badJSON() throws {
        let db = try Self.connection("")
        for text in ["{", #"{"id": "x"}"#, "[1]"] {
            let error = try #require(throws: DecodingError.self) {
                try db.row(Book.self, "SELECT 't' AS title, \(text) AS author")
            }
            #expect("\(error)".contains("author") || "\(error)".contains("id") || text == "[1]")
        }
    }

    // MARK: What is refused

    @Test("A property without a column makes SQLite refuse the value and name the property")
    func unknownColumn() throws {
        struct Other: Encodable { var title: String, colour: String }
        let db = try Self.connection(Self.schema)
        let error = try #require(throws: DatabaseError.self) {
            try db.insert(Other(title: "a", colour: "b"), into: "note")
        }
        #expect(error.message.contains("colour"))
    }

    @Test("Updating or deleting a row throws if no primary key, property or value identifies it")
    func noKey() throws {
        struct Title: Codable { var title: String }
        let db = try Self.connection(Self.schema + "; CREATE TABLE loose(title)")
        try db.insert(Title(title: "a"), into: "loose")
        try db.insert(Note(id: 1, title: "a"), into: "note")
        let refusals: [() throws -> Void] = [
            { try db.update(Title(title: "b"), in: "loose") }, { try db.delete(Title(title: "b"), from: "loose") },
            { try db.upsert(Title(title: "b"), into: "loose") }, { try db.update(Title(title: "b"), in: "note") },
            { try db.update(Note(id: nil, title: "b"), in: "note") },
            { try db.delete(Note(id: nil, title: "b"), from: "note") },
            { try db.update(Title(title: "b"), in: "missing") },
        ]
        for refusal in refusals {
            #expect(try #require(throws: StoreError.self) { try refusal() }.code == .misuse)
        }
        #expect(try db.values(String.self, "SELECT title FROM loose UNION ALL SELECT title FROM note") == ["a", "a"])
    }

    @Test("A value that is not a structure of columns is refused before any SQL runs")
    func noRow() throws {
        final class Child: Codable { var a = 1 }
        let db = try Self.connection("CREATE TABLE t(a)")
        #expect(throws: EncodingError.self) { try db.insert([1, 2], into: "t") }
        #expect(throws: EncodingError.self) { try db.insert(5, into: "t") }
        #expect(throws: EncodingError.self) { try db.insert(["a": UInt64.max], into: "t") }
        #expect(throws: EncodingError.self) { try db.insert(["a": Double.infinity].mapValues { [$0] }, into: "t") }
        #expect(try db.value(Int.self, "SELECT count(*) FROM t") == 0)
        try db.insert(Child(), into: "t")
        try db.insert(["a": 2], into: "t")
        #expect(try db.values(Int.self, "SELECT a FROM t") == [1, 2])
    }

    @Test("A table that was created anew with another key is updated by the new key", arguments: [false, true])
    func otherKey(isStores: Bool) throws {
        struct Pair: Codable { var a: Int, b: Int }
        let db = try Self.connection("CREATE TABLE t(a PRIMARY KEY, b); INSERT INTO t VALUES (1, 2)")
        if isStores { try db.refuseWhatOutlastsLoans() }
        try db.execute("BEGIN")
        try db.lend { db in
            #expect(try db.update(Pair(a: 1, b: 3), in: "t"))
            try db.executeScript("DROP TABLE t; CREATE TABLE t(a, b PRIMARY KEY); INSERT INTO t VALUES (1, 7), (9, 3)")
            #expect(try db.update(Pair(a: 1, b: 3), in: "t"))
        }
        #expect(try db.values(Int.self, "SELECT a FROM t ORDER BY b") == [1, 1])
    }

    // MARK: Reading

    @Test("After a savepoint that changed the key is rolled back, rows are found by the old key")
    func undoneKey() throws {
        struct Undo: Error {}
        struct Tag: Codable { var kind: Int, name: String }
        let db = try Self.connection("CREATE TABLE tag(kind INTEGER, name TEXT, PRIMARY KEY(kind, name))")
        try db.refuseWhatOutlastsLoans()
        try db.execute("BEGIN")
        try db.lend { db in
            for name in ["a", "b", "c"] { try db.insert(Tag(kind: 1, name: name), into: "tag") }
            #expect(throws: Undo.self) {
                try db.savepoint {
                    try db.executeScript(
                        "ALTER TABLE tag RENAME TO old; CREATE TABLE tag(kind INTEGER PRIMARY KEY, name)")
                    try db.insert(Tag(kind: 1, name: "a"), into: "tag")
                    #expect(try db.delete(Tag(kind: 1, name: "a"), from: "tag"))
                    throw Undo()
                }
            }
            #expect(try db.delete(Tag(kind: 1, name: "a"), from: "tag"))
            #expect(try db.values(String.self, "SELECT name FROM tag ORDER BY name") == ["b", "c"])
        }
        try db.execute("ROLLBACK")
    }

    @Test("The columns of a nested structure are found in any letter case")
    func nestedCase() throws {
        struct Author: Codable, Equatable { var name: String }
        struct Book: Codable, Equatable { var title: String, author: Author? }
        let db = try Self.connection("SELECT 1")
        #expect(
            try db.rows(Book.self, "SELECT 't' AS Title, 'n' AS \(identifier: "Author.Name")")
                == [Book(title: "t", author: Author(name: "n"))])
    }

    @Test("Values are read by column name, and a missing name throws")
    func byName() throws {
        let db = try Self.connection("")
        try db.forEachRow("SELECT 1 AS Number, 'x' AS text") { row in
            let (number, text) = (try row.get(Int.self, named: "number"), try row.get(String.self, named: "text"))
            #expect(number == 1)
            #expect(text == "x")
        }
        let error = try #require(throws: DatabaseError.self) {
            try db.forEachRow("SELECT 1 AS Number") { row in _ = try row.get(Int.self, named: "other") }
        }
        #expect(error.message.contains("Number"))
    }

    @Test("A long result is passed on value by value, and ends with the error that the closure throws")
    func streaming() throws {
        struct End: Error {}
        struct Number: Decodable { var i: Int }
        let db = try Self.connection("")
        var sum = 0
        let endless: SQL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
        #expect(throws: End.self) {
            try db.forEach(Number.self, endless) { number in
                sum += number.i
                if number.i == 100 { throw End() }
            }
        }
        #expect(sum == 5_050)
        #expect(try db.exists("SELECT 1"))
        #expect(try !db.exists("SELECT 1 WHERE 0"))
    }

    @Test(
        "Whatever a user types becomes a pattern that full-text search accepts",
        arguments: [
            "hello", "Hello World", "a\"b", "NEAR(a b)", "x AND", "body:foo*", "^a - b", "naïve 日本語 ½", "' OR 1=1",
        ])
    func patterns(_ text: String) throws {
        for version in ["fts5", "fts4"] {
            guard let db = try? Self.connection("CREATE VIRTUAL TABLE f USING \(version)(body)") else { continue }
            try db.execute("INSERT INTO f(body) VALUES (\(text + "suffix")), (\(text)), ('unrelated')")
            let exact = try #require(FullTextPattern(allOf: text))
            let begun = try #require(FullTextPattern(allOf: text, completesLast: true))
            let any = try #require(FullTextPattern(anyOf: text + " unrelated"))
            func rows(_ pattern: FullTextPattern) throws -> [Int] {
                try db.values(Int.self, "SELECT rowid FROM f WHERE f MATCH \(pattern) ORDER BY rowid")
            }
            #expect(try rows(exact).contains(2))
            #expect(try rows(begun).contains(2))
            #expect(try rows(any).contains(3))
        }
        #expect(FullTextPattern(allOf: " *\"' ") == nil)
    }
}
