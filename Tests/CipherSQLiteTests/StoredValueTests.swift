internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Values that are written, read, written again and looked up: nothing changes, neither in Swift nor in the file.
struct StoredValueTests {
    private static func connection(_ schema: String, _ forms: ColumnForms = ColumnForms()) throws -> Connection {
        let connection = try Connection(inMemoryWith: [])
        try connection.executeScript(text: schema)
        connection.columnForms = forms
        return connection
    }

    private struct Event: Codable, Equatable { var id: Int, at: Date }
    private static let event = "CREATE TABLE event(id INTEGER PRIMARY KEY, at DATETIME)"

    // MARK: Dates

    @Test(
        "A date that another library wrote as text is found and stays the same text when it is written again",
        arguments: [(ColumnForms.DateForm.text, " "), (.textWithT, "T")])
    func everyMillisecond(_ test: (form: ColumnForms.DateForm, separator: String)) throws {
        let db = try Self.connection(Self.event, ColumnForms(dates: test.form))
        for (number, second) in ["2026-11-23:08:26:40", "1969-12-31:23:59:59", "0001-01-01:00:00:00"].enumerated() {
            for millisecond in 0..<1_000 {
                let day = second.prefix(10) + test.separator + second.dropFirst(11)
                let digits = String(1_000 + millisecond).dropFirst()
                try db.execute("INSERT INTO event VALUES (\(number * 1_000 + millisecond), \(day + "." + digits))")
            }
        }
        let before = try db.values(String.self, "SELECT at FROM event ORDER BY id")
        for event in try db.rows(Event.self, "SELECT * FROM event") {
            #expect(try db.value(Int.self, "SELECT id FROM event WHERE at = \(event.at)") == event.id)
            #expect(try !db.exists("SELECT 1 FROM event WHERE id = \(event.id) AND at > \(event.at)"))
            try db.update(event, in: "event")
        }
        #expect(try db.values(String.self, "SELECT at FROM event ORDER BY id") == before)
    }

    @Test("A date as text is rounded to the nearest millisecond, in every century", arguments: [1, 2])
    func rounding(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let db = try Self.connection(Self.event, ColumnForms(dates: .text))
        for _ in 0..<2_000 {
            let date = Date(timeIntervalSince1970: .random(in: -62_135_500_000..<253_402_300_799, using: &random))
            try db.upsert(Event(id: 1, at: date), into: "event")
            let read = try #require(try db.row(Event.self, "SELECT * FROM event"))
            #expect(abs(read.at.timeIntervalSince(date)) <= 0.000_6)
            let text = try db.value(String.self, "SELECT at FROM event")
            try db.upsert(read, into: "event")
            #expect(try db.value(String.self, "SELECT at FROM event") == text)
            #expect(try db.row(Event.self, "SELECT * FROM event") == read)
        }
    }

    @Test(
        "A date that its form cannot express is refused, as a property and as an interpolated value",
        arguments: [-62_135_769_601, 253_402_300_800, Double.infinity, Double.nan])
    func beyondText(_ seconds: Double) throws {
        let date = Date(timeIntervalSince1970: seconds)
        let db = try Self.connection(Self.event, ColumnForms(dates: .textWithT))
        #expect(throws: EncodingError.self) { try db.insert(Event(id: 1, at: date), into: "event") }
        #expect(throws: EncodingError.self) { try db.insert(["at": date], into: "event") }
        #expect(throws: DatabaseError.self) { try db.execute("INSERT INTO event VALUES (1, \(date))") }
        #expect(try !db.exists("SELECT 1 FROM event"))
        #expect(try db.exists("SELECT 1 WHERE 1 = 1"))
    }

    // MARK: Every type

    /// `CipherMutator values 100000` tries more values.
    @Test("A value of any type is read as it was written, or not at all, and written again changes no byte")
    func everyType() throws {
        var trials = ValueTrials(count: 300)
        try trials.run()
        #expect(trials.faults == [])
    }

    // MARK: Numbers

    private struct Amount: Codable, Equatable { var id: Int, amount: Decimal }

    @Test(
        "A decimal amount is read back from a column of any type, is found by its value, and keeps its stored bytes",
        arguments: ["DECIMAL(10,2)", "NUMERIC", "MONEY", "TEXT", "REAL", "INTEGER", "BLOB"], [2, 6])
    func amounts(type: String, digits: Int) throws {
        let db = try Self.connection("CREATE TABLE a(id INTEGER PRIMARY KEY, amount \(type))")
        var random = SeededRandom(seed: UInt64(digits))
        for id in 0..<2_000 {
            let count = Int.random(in: -99_999_999...99_999_999, using: &random)
            let amount = Amount(id: id, amount: Decimal(count) / pow(10, digits))
            try db.insert(amount, into: "a")
            #expect(try db.row(Amount.self, "SELECT * FROM a WHERE id = \(id)") == amount)
            #expect(try db.exists("SELECT 1 FROM a WHERE id = \(id) AND amount = \(amount.amount)"))
            let stored = try db.value(Value.self, "SELECT amount FROM a WHERE id = \(id)")
            try db.update(amount, in: "a")
            #expect(try db.value(Value.self, "SELECT amount FROM a WHERE id = \(id)") == stored)
        }
    }

    @Test("A REAL that is too large for a Decimal, or infinite, is not read as one", arguments: [1e300, .infinity])
    func noDecimal(_ number: Double) throws {
        let db = try Self.connection("")
        #expect(throws: DatabaseError.self) { try db.value(Decimal.self, "SELECT \(number)") }
    }

    @Test("NaN is refused as a property, of which SQLite would store NULL")
    func notANumber() throws {
        struct Numbers: Codable { var real: Double?, single: Float?, decimal: Decimal? }
        struct Required: Codable { var real: Double }
        enum Wrapped: Encodable {
            case value
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(Double.nan)
            }
        }
        let db = try Self.connection("CREATE TABLE n(real REAL, single REAL, decimal NUMERIC)")
        #expect(throws: EncodingError.self) { try db.insert(Required(real: .nan), into: "n") }
        #expect(throws: EncodingError.self) { try db.insert(Numbers(real: .nan), into: "n") }
        #expect(throws: EncodingError.self) { try db.insert(Numbers(single: .nan), into: "n") }
        #expect(throws: EncodingError.self) { try db.insert(Numbers(decimal: .nan), into: "n") }
        #expect(throws: EncodingError.self) { try db.insert(["real": Wrapped.value], into: "n") }
        #expect(try !db.exists("SELECT 1 FROM n"))
        #expect(try db.value(Value.self, "SELECT \(Decimal.nan)") == .null)
    }

    // MARK: Names and rowids

    /// A row with columns of any names.
    private struct AnyRow: Codable {
        struct Column: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        static let composed = "caf\u{e9}"
        static let decomposed = "cafe\u{301}"
        let values: [String]

        init(values: [String]) { self.values = values }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Column.self)
            values = try [Self.decomposed, Self.composed].map {
                try container.decode(String.self, forKey: Column(stringValue: $0))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Column.self)
            for (name, value) in zip([Self.decomposed, Self.composed], values) {
                try container.encode(value, forKey: Column(stringValue: name))
            }
        }
    }

    @Test("Tables and columns whose names are equivalent Unicode are different ones, in one closure")
    func equivalentNames() throws {
        let db = try Self.connection("")
        let names = [AnyRow.composed, AnyRow.decomposed]
        for table in names {
            try db.execute("CREATE TABLE \(identifier: table)(\(identifier: names[0]), \(identifier: names[1]))")
        }
        for (number, table) in [0, 1, 0].enumerated() {
            try db.insert(AnyRow(values: ["\(table)", "\(number)"]), into: names[table])
        }
        #expect(
            try db.rows(AnyRow.self, "SELECT * FROM \(identifier: names[0])").map(\.values) == [
                ["0", "0"], ["0", "2"],
            ])
        #expect(try db.rows(AnyRow.self, "SELECT * FROM \(identifier: names[1])").map(\.values) == [["1", "1"]])
        #expect(
            try db.values(String.self, "SELECT \(identifier: names[1]) FROM \(identifier: names[0])") == ["0", "0"])
    }

    @Test("An insert returns the rowid of the inserted row, and nil if no row with a rowid was inserted")
    func rowIDs() throws {
        struct Note: Codable { var id: Int? = nil, body: String }
        let db = try Self.connection(
            """
            CREATE TABLE log(body); INSERT INTO log(rowid, body) VALUES (40, 'x');
            CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT);
            CREATE TABLE word(id INT, body TEXT PRIMARY KEY) WITHOUT ROWID;
            CREATE VIEW v AS SELECT * FROM note;
            CREATE TRIGGER a BEFORE INSERT ON note WHEN new.body = 'no' BEGIN SELECT RAISE(IGNORE); END;
            CREATE TRIGGER b AFTER INSERT ON note BEGIN INSERT INTO log VALUES (new.body); END;
            CREATE TRIGGER c INSTEAD OF INSERT ON v BEGIN INSERT INTO log VALUES (new.body); END
            """)
        #expect(try db.insert(Note(body: "first"), into: "note") == 1)
        #expect(try db.insert(Note(body: "no"), into: "note") == nil)
        #expect(try db.insert(Note(body: "word"), into: "word") == nil)
        #expect(try db.insert(Note(body: "view"), into: "v") == nil)
        #expect(try db.insert(Note(body: "second"), into: "NOTE") == 2)
        #expect(throws: DatabaseError.self) { try db.insert(Note(body: "no"), into: "note", returning: Note.self) }
    }
}
