internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// A connection as it is opened by an app that uses nothing else of this package.
struct OpeningTests {
    private let folder: TemporaryFolder
    private let file: URL

    init() throws {
        folder = try TemporaryFolder()
        file = URL(filePath: folder.path("app.db"))
    }

    private func made(_ key: CipherKey?) throws {
        let connection = try Connection(file, mode: .create, key: key)
        try connection.execute("CREATE TABLE note(body TEXT)")
        try connection.execute("INSERT INTO note VALUES (\("Ana"))")
        connection.close()
    }

    @Test("A database created with a key opens with that key and no other")
    func keys() throws {
        let key = try CipherKey.random()
        try made(key)
        let connection = try Connection(file, key: key)
        #expect(try connection.values(String.self, "SELECT body FROM note") == ["Ana"])
        connection.close()
        for other in [nil, try CipherKey.random()] {
            let error = #expect(throws: DatabaseError.self) { try Connection(file, key: other) }
            #expect(error?.isCorrupt == true)
        }
        #expect(try Data(contentsOf: file).range(of: Data("Ana".utf8)) == nil)
    }

    @Test("A format in which no database could be opened is refused with the reason, and no file is created")
    func impossibleFormats() throws {
        let newest = Engine.current.defaultCompatibility
        let formats = [
            CipherSettings(compatibility: newest + 1), CipherSettings(compatibility: 0),
            CipherSettings(compatibility: -1),
            CipherSettings(pageSize: 512), CipherSettings(pageSize: 1000), CipherSettings(pageSize: 131_072),
            CipherSettings(kdfIterations: 0), CipherSettings(kdfIterations: -5),
            CipherSettings(plaintextHeaderSize: -1), CipherSettings(plaintextHeaderSize: 16),
            CipherSettings(compatibility: 3, plaintextHeaderSize: 32),
        ]
        for mode in [Connection.Mode.create, .readWrite, .readOnly] {
            for format in formats {
                let error = #expect(throws: StoreError.self, "\(format)") {
                    try Connection(file, mode: mode, key: .passphrase("secret"), format: format)
                }
                #expect(error?.code == .configuration, "\(format)")
            }
            guard newest >= 4 else { continue }
            for key in [try CipherKey.passphrase("secret"), try .random()] {
                let error = #expect(throws: StoreError.self) {
                    try Connection(file, mode: mode, key: key, format: CipherSettings(plaintextHeaderSize: 32))
                }
                #expect(error?.code == .saltMissing)
            }
        }
        #expect(try folder.names.isEmpty)
    }

    @Test("A read-only connection cannot write, and opening a missing file throws")
    func modes() throws {
        #expect(throws: DatabaseError.self) { try Connection(file) }
        #expect(throws: DatabaseError.self) { try Connection(file, mode: .readOnly) }
        try made(nil)
        let connection = try Connection(file, mode: .readOnly)
        let error = #expect(throws: DatabaseError.self) { try connection.execute("DELETE FROM note") }
        #expect(error?.isPermission == true)
        #expect(throws: StoreError.self) { try Connection(#require(URL(string: "https://example.org/app.db"))) }
    }

    @Test("Opening a path that is not a file throws and creates nothing")
    func noFiles() throws {
        let directory = folder.path("directory")
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        try made(nil)
        try #require(mkfifo(folder.path("fifo"), 0o600) == 0)
        let names = try folder.names
        let places: [(String, StoreError.Code)] = [
            ("file:", .configuration), ("file://\(file.path())%00.evil", .configuration),
            ("file://\(file.path())/", .notAFile), ("file://\(folder.path("new"))/", .notAFile),
            ("file://\(directory)", .notAFile), ("file://\(directory)/", .notAFile),
            ("file://\(folder.path("fifo"))", .notAFile),
        ]
        for (place, code) in places {
            for mode in [Connection.Mode.readOnly, .readWrite, .create] {
                let error = #expect(throws: StoreError.self, "\(place)") {
                    try Connection(#require(URL(string: place)), mode: mode)
                }
                #expect(error?.code == code, "\(place)")
            }
        }
        #expect(try folder.names == names)
    }

    @Test("A closed connection refuses every call")
    func closed() throws {
        let connection = try Connection(file, mode: .create)
        connection.close()
        connection.close()
        let uses: [(Connection) throws -> Void] = [
            { try $0.register(SQLFunction("f") { _ in .null }) },
            { try $0.register(Collation(name: "c") { _, _ in 0 }) },
            { try $0.execute("SELECT 1") }, { try $0.executeScript("SELECT 1") },
            { try $0.forEachRow("SELECT 1") { _ in } },
            { _ = try $0.value(Int.self, "SELECT 1") }, { _ = try $0.values(Int.self, "SELECT 1") },
            { try $0.transaction {} }, { try $0.savepoint {} }, { try $0.checkCancellation() },
        ]
        for use in uses {
            let error = #expect(throws: DatabaseError.self) { try use(connection) }
            #expect(error?.code == DatabaseError.misuse)
        }
        #expect(connection.changes == 0 && connection.lastInsertedRowID == 0 && !connection.isInTransaction)
    }

    @Test("A query, a transaction and a savepoint throw if the connection is closed inside them")
    func closedInside() throws {
        try made(nil)
        var rows = 0
        let uses: [(Connection) throws -> Void] = [
            { connection in
                try connection.forEachRow("SELECT 1 UNION ALL SELECT 2") { _ in
                    rows += 1
                    connection.close()
                }
            },
            { connection in
                try connection.transaction {
                    try connection.execute("DELETE FROM note")
                    connection.close()
                }
            },
            { connection in
                try connection.savepoint {
                    try connection.execute("DELETE FROM note")
                    connection.close()
                }
            },
        ]
        for use in uses {
            let connection = try Connection(file)
            let error = #expect(throws: DatabaseError.self) { try use(connection) }
            #expect(error?.code == DatabaseError.misuse)
        }
        #expect(rows == 1)
        #expect(try Connection(file).values(String.self, "SELECT body FROM note") == ["Ana"])
    }

    @Test(
        "A name that SQLite would truncate or reject is refused with the reason",
        arguments: ["", "a\u{0}b", String(repeating: "é", count: 128)])
    func names(name: String) throws {
        let connection = try Connection(inMemoryWith: [])
        let error = #expect(throws: DatabaseError.self) {
            try connection.register(SQLFunction(name) { _ in .null })
        }
        #expect(error?.code == DatabaseError.misuse && error?.message.contains("name") == true)
        guard name.utf8.count < 256 else { return }
        let other = #expect(throws: DatabaseError.self) {
            try connection.register(Collation(name: name) { _, _ in 0 })
        }
        #expect(other?.code == DatabaseError.misuse && other?.message.contains("name") == true)
    }

    @Test("A number of arguments that SQLite does not support is refused", arguments: [Int.min, -1, 128, Int.max])
    func argumentCounts(count: Int) throws {
        let error = #expect(throws: DatabaseError.self) {
            try Connection(inMemoryWith: []).register(SQLFunction("f", argumentCount: count) { _ in .null })
        }
        #expect(error?.code == DatabaseError.misuse && error?.message.contains("arguments") == true)
    }

    @Test("An in-memory database starts empty, and accepts rows and a collation of the app")
    func inMemory() throws {
        let backwards = Collation(name: "backwards") { left, right in
            left.elementsEqual(right) ? 0 : left.lexicographicallyPrecedes(right) ? 1 : -1
        }
        let connection = try Connection(inMemoryWith: [backwards])
        #expect(try connection.value(Int.self, "SELECT count(*) FROM sqlite_master") == 0)
        try connection.execute("CREATE TABLE t(a TEXT COLLATE backwards)")
        for text in ["a", "c", "b"] { try connection.execute("INSERT INTO t VALUES (\(text))") }
        #expect(try connection.values(String.self, "SELECT a FROM t ORDER BY a") == ["c", "b", "a"])
    }

    @Test(
        "A function receives and returns a value of each storage class unchanged",
        arguments: [
            Value.null, .integer(.min), .real(-0.5), .text(""), .text("a\u{0}b"), .blob([]), .blob([0, 255]),
        ])
    func values(_ value: Value) throws {
        let connection = try Connection(inMemoryWith: [])
        try connection.register(SQLFunction("same", argumentCount: 1) { $0[0] })
        #expect(try connection.value(Value.self, "SELECT same(\(value))") == value)
        #expect(
            try connection.value(String.self, "SELECT typeof(same(\(value)))")
                == connection.value(String.self, "SELECT typeof(\(value))"))
    }

    @Test("An error thrown by a function is the error of the statement, and its number of arguments is checked")
    func failures() throws {
        struct Refusal: Error, CustomStringConvertible { let description = "not this one" }
        let connection = try Connection(inMemoryWith: [])
        try connection.register(SQLFunction("refuse") { _ in throw Refusal() })
        let error = #expect(throws: DatabaseError.self) { try connection.execute("SELECT refuse(1, 2)") }
        #expect(error?.message == "not this one")
        try connection.register(SQLFunction("one", argumentCount: 1) { $0[0] })
        #expect(throws: DatabaseError.self) { try connection.execute("SELECT one(1, 2)") }
        #expect(throws: DatabaseError.self) {
            try connection.register(SQLFunction("many", argumentCount: 128) { $0[0] })
        }
    }

    @Test("An empty file, which every key opens, is refused by a connection that only reads")
    func empty() throws {
        try Data().write(to: file)
        let error = #expect(throws: DatabaseError.self) {
            try Connection(file, mode: .readOnly, key: TestKeys.raw())
        }
        #expect(error?.isCorrupt == true)
        for mode in [Connection.Mode.readWrite, .create] {
            try Connection(file, mode: mode, key: TestKeys.raw()).close()
        }
    }

    @Test("A schema may call an innocuous function of the app, and no other")
    func trust() throws {
        guard Engine.current.sqliteVersionNumber >= 3_031_000 else { return }
        let connection = try Connection(file, mode: .create)
        for isInnocuous in [true, false] {
            try connection.register(SQLFunction("twice", isInnocuous: isInnocuous) { .text("\($0)\($0)") })
            try connection.execute("CREATE TABLE IF NOT EXISTS t(a)")
            try connection.execute("CREATE VIEW IF NOT EXISTS v AS SELECT twice(a) FROM t")
            if isInnocuous {
                try connection.execute("SELECT * FROM v")
            } else {
                #expect(throws: DatabaseError.self) { try connection.execute("SELECT * FROM v") }
            }
        }
    }
}
