internal import CipherErrors
internal import CipherSQLite
import Testing

struct SQLTests {
    private let fixture: EngineFixture

    init() throws {
        fixture = try EngineFixture()
    }

    @Test("SQL binds interpolated values, and never pastes them into its text")
    func interpolation() throws {
        let name = "'; DROP TABLE t; --"
        let missing: String? = nil
        let sql: SQL = "SELECT \(name), \(1), \(missing), \(2.5), \([UInt8]([1]))"
        #expect(sql.text == "SELECT ?, ?, ?, ?, ?")
        #expect(sql.values == [.text(name), .integer(1), .null, .real(2.5), .blob([1])])
    }

    @Test("SQL accepts quoted identifiers, and other SQL with its values")
    func pieces() throws {
        let condition: SQL = "uid = \("ana")"
        let sql: SQL = "SELECT * FROM \(identifier: "a \"b`") WHERE \(condition) LIMIT \(3)"
        #expect(sql.text == "SELECT * FROM `a \"b``` WHERE uid = ? LIMIT ?")
        #expect(sql.values == [.text("ana"), .integer(3)])
    }

    @Test("SQL binds the values of embedded SQL in their place")
    func orderOfValues() throws {
        let db = try fixture.open()
        let pair = SQL(text: "? || ?", values: [.text("b"), .text("c")])
        let sql: SQL = "SELECT \("a") || \(pair) || \("d")"
        #expect(sql == SQL(text: "SELECT ? || ? || ? || ?", values: ["a", "b", "c", "d"].map(Value.text)))
        #expect(sql != "SELECT \("a") || \(pair) || \("e")")
        #expect(try db.value(String.self, sql) == "abcd")
    }

    @Test("SQL binds each value of a list, and none for an empty list")
    func lists() throws {
        let db = try fixture.open()
        let numbers: [Int] = [1, 2, 3]
        #expect(try db.value(Bool.self, "SELECT 2 IN (\(list: numbers)) AND 4 NOT IN (\(list: numbers))") == true)
        #expect(try db.value(Bool.self, "SELECT 2 IN (\(list: [Int]()))") == false)
        #expect(try db.value(Bool.self, "SELECT 'b' IN (\("a"), \(list: Set(["b"])))") == true)
        #expect(try db.value(Bool.self, "SELECT \(2) IN (\(list: [1, 2] as [UInt8]))") == true)
    }

    @Test("SQL refuses an array of bytes as the only value of a list, and binds it as a blob elsewhere")
    func bytesInList() throws {
        let db = try fixture.open()
        let bytes: [UInt8] = [1, 2, 3]
        let refused: [SQL] = [
            "SELECT 1 IN (\(bytes))", "SELECT 1 NOT in ( \(bytes) )", "SELECT 1 IN\n(\n\(bytes)\n)",
            "SELECT \("1 IN (\(bytes))" as SQL), 2",
        ]
        for sql in refused {
            let error = try databaseError { _ = try db.value(Int.self, sql) }
            #expect(error.code == 21)
            #expect(error.message.contains("list: values"))
        }
        let bound: [SQL] = [
            "SELECT x'010203' = (\(bytes))", "SELECT x'010203' IN (\(bytes), 5)", "SELECT length(\(bytes)) > 2",
            "SELECT x'010203' IN (\(list: [bytes]))", "SELECT min(\(bytes), x'02') = x'010203'",
        ]
        for sql in bound { #expect(try db.value(Bool.self, sql) == true) }
    }

    @Test("SQL quotes a quotation mark that a combining mark hides from Swift's characters")
    func combiningMark() throws {
        let db = try fixture.open()
        let name = "a\"\u{301}b"
        try db.execute("CREATE TABLE \(identifier: name)(v)")
        let stored = try #require(try db.value(String.self, "SELECT name FROM sqlite_master"))
        #expect(stored.utf8.elementsEqual(name.utf8))
    }

    @Test("SQL with the wrong number of values throws", arguments: [0, 1, 3])
    func count(values: Int) throws {
        let db = try fixture.open()
        let error = try databaseError {
            try db.execute(SQL(text: "SELECT ?, ?", values: Array(repeating: .null, count: values)))
        }
        #expect(error.code == 21)
    }

    @Test("SQL in an error does not show the bound values")
    func errorsHoldNoValues() throws {
        let db = try fixture.open()
        try db.execute("CREATE TABLE t(v UNIQUE)")
        let insert: SQL = "INSERT INTO t VALUES (\("hunter2"))"
        try db.execute(insert)
        let error = try databaseError { try db.execute(insert) }
        #expect(error.extendedCode == 2067)
        #expect(error.sql == "INSERT INTO t VALUES (?)")
        #expect(!error.description.contains("hunter2"))
    }
}
