internal import CipherErrors
internal import CipherSQLite
import Foundation
import Testing

struct ValueTests {
    private let fixture: EngineFixture

    init() throws {
        fixture = try EngineFixture()
    }

    private static let values: [Value] = [
        .null, .integer(0), .integer(.min), .integer(.max), .integer(-1), .real(0), .real(-0.0), .real(.infinity),
        .real(-.infinity), .real(.leastNonzeroMagnitude), .real(.greatestFiniteMagnitude), .real(0.1), .text(""),
        .text("a\0b"), .text("\0"), .text("e\u{301}"), .text("\u{e9}"), .text("👩‍👩‍👧‍👦"), .blob([]), .blob([0]),
        .blob([0xff, 0x00, 0xfe]), .blob([UInt8](repeating: 0xa5, count: 100_000)),
    ]

    @Test(
        "A value is stored and read back unchanged, to the byte", arguments: values, ["UTF-8", "UTF-16le", "UTF-16be"])
    func roundTrip(value: Value, encoding: String) throws {
        let db = try fixture.open()
        try db.execute(SQL(text: "PRAGMA encoding = '\(encoding)'"))
        try db.execute("CREATE TABLE t(v)")
        try db.execute("INSERT INTO t VALUES (\(value))")
        let stored = try #require(try db.value(Value.self, "SELECT v FROM t"))
        switch (value, stored) {
        case (.text(let left), .text(let right)): #expect(left.utf8.elementsEqual(right.utf8))
        case (.real(let left), .real(let right)): #expect(left.bitPattern == right.bitPattern)
        default: #expect(value == stored)
        }
        let type = try db.value(String.self, "SELECT typeof(v) FROM t")
        #expect(type == value.typeName)
    }

    @Test("A value that is NaN is stored as NULL")
    func notANumber() throws {
        let db = try fixture.open()
        #expect(try db.value(Value.self, "SELECT \(Double.nan)") == .null)
    }

    @Test("A value that is an empty blob or text is not NULL")
    func empty() throws {
        let db = try fixture.open()
        #expect(try db.value(String.self, "SELECT typeof(\([UInt8]()))") == "blob")
        #expect(try db.value(String.self, "SELECT typeof(\(Data()))") == "blob")
        #expect(try db.value(String.self, "SELECT typeof(\(""))") == "text")
        #expect(try db.value([UInt8].self, "SELECT x''") == [])
        #expect(try db.value([UInt8]?.self, "SELECT NULL") == .some(nil))
        #expect(try db.value([UInt8]?.self, "SELECT x''") == .some([]))
    }

    @Test("A value that does not fit its type throws, and is never truncated")
    func outOfRange() throws {
        let db = try fixture.open()
        #expect(try db.value(Int8.self, "SELECT 127") == 127)
        #expect(try db.value(UInt64.self, "SELECT \(Int64.max)") == UInt64(Int64.max))
        for read: (Connection) throws -> Any? in [
            { try $0.value(Int8.self, "SELECT 128") }, { try $0.value(UInt.self, "SELECT -1") },
            { try $0.value(Int.self, "SELECT 1.5") }, { try $0.value(Int.self, "SELECT '1'") },
            { try $0.value(String.self, "SELECT 1") }, { try $0.value(Double.self, "SELECT '1'") },
            { try $0.value(Bool.self, "SELECT NULL") }, { try $0.value([UInt8].self, "SELECT 1") },
            { try $0.value(UUID.self, "SELECT 'none'") },
        ] {
            let error = try databaseError { try read(db) }
            #expect(error.code == 20)
        }
    }

    @Test("A text value that is not valid UTF-8 keeps its bytes as a blob")
    func invalidText() throws {
        let db = try fixture.open()
        try db.execute("CREATE TABLE t(v)")
        try db.execute("INSERT INTO t VALUES (CAST(x'61ff62' AS TEXT))")
        #expect(try db.value([UInt8].self, "SELECT v FROM t") == [0x61, 0xff, 0x62])
        #expect(try db.value(String.self, "SELECT v FROM t") == "a\u{fffd}b")
    }

    @Test("A text value in a UTF-16 database has UTF-8 bytes, whichever way it was read before")
    func bytesOfUTF16() throws {
        let db = try fixture.open()
        try db.execute("PRAGMA encoding = 'UTF-16'")
        try db.execute("CREATE TABLE t(v)")
        try db.execute("INSERT INTO t VALUES ('é')")
        #expect(try db.value([UInt8].self, "SELECT v FROM t") == Array("é".utf8))
        try db.forEachRow("SELECT v FROM t") { row in
            let text: String = try row.get(at: 0)
            let bytes: [UInt8] = try row.get(at: 0)
            #expect(text == "é")
            #expect(bytes == Array(text.utf8))
        }
    }
}

extension Value {
    fileprivate var typeName: String {
        switch self {
        case .null: "null"
        case .integer: "integer"
        case .real: "real"
        case .text: "text"
        case .blob: "blob"
        }
    }
}
