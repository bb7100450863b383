internal import CipherErrors
internal import CipherPageSealing
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The sealing file layer writes the same bytes as SQLCipher itself.
@Suite("Sealing", .enabled(if: FileLayer.canSeal(CipherSettings())))
struct SealingTests {
    private let folder: TemporaryFolder
    private let key: CipherKey
    private var path: String { folder.path("app.db") }

    init() throws {
        folder = try TemporaryFolder()
        key = try .raw(.random(count: 32), salt: .random(count: 16))
    }

    /// Writes through the layer as the encryption upgrade does.
    private func sealing(
        cachePages: Int = 50, startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool = start,
        _ body: (Connection) throws -> Void
    ) throws {
        let file = try file()
        defer { withExtendedLifetime(file) {} }
        let layer = try layer(file, startThread)
        let connection = try attach(layer)
        do {
            defer { connection.close() }
            try connection.execute("PRAGMA copy.journal_mode = OFF")
            try connection.execute("PRAGMA copy.synchronous = OFF")
            try connection.execute(SQL(text: "PRAGMA copy.cache_size = \(cachePages)"))
            try body(connection)
        }
        try layer.check(path)
    }

    @Sendable private static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        Thread.detachNewThread(body)
        return true
    }

    /// Opens the file, and creates it if it does not exist.
    private func file() throws -> FileHandle {
        if !FileManager.default.fileExists(atPath: path) {
            try Data().write(to: URL(fileURLWithPath: path))
        }
        return try FileHandle(forUpdating: URL(fileURLWithPath: path))
    }

    private func layer(
        _ file: FileHandle, _ startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool
    ) throws -> FileLayer {
        try FileLayer(
            sealing: DescriptorFile(descriptor: file.fileDescriptor, path: path), key: key,
            startThread: startThread)
    }

    private func attach(_ layer: FileLayer) throws -> Connection {
        let connection = try Connection(path: ":memory:", mode: .create)
        try connection.attachEmpty(layer, as: "copy", pages: (PageSealer.pageSize, PageSealer.reservedSize))
        return connection
    }

    private func open() throws -> Connection {
        try Connection(path: path, mode: .readWrite, key: key, settings: CipherSettings(), busyTimeout: .zero)
    }

    private func fill(_ connection: Connection, rows: Int) throws {
        try connection.execute("CREATE TABLE copy.t(id INTEGER PRIMARY KEY, a TEXT, b BLOB)")
        try connection.execute("CREATE INDEX copy.i ON t(a)")
        try connection.transaction {
            for id in 0..<rows {
                // Rows spread over the index, so that its pages leave the small cache and return.
                try connection.execute(
                    "INSERT INTO t VALUES (\(id), \("\(id &* 7_919 % 10_007) word"), zeroblob(\(id % 1_500)))")
            }
        }
    }

    private func expectAuthentic(_ connection: Connection) throws {
        #expect(try connection.values(String.self, "PRAGMA cipher_integrity_check").isEmpty)
        #expect(try connection.values(String.self, "PRAGMA integrity_check") == ["ok"])
    }

    @Test(
        "SQLCipher authenticates every sealed page and finds every row, with threads and without",
        arguments: [true, false])
    func readsBack(hasThreads: Bool) throws {
        try sealing(startThread: { hasThreads && Self.start($0) }) { try fill($0, rows: 10_000) }
        let connection = try open()
        defer { connection.close() }
        try expectAuthentic(connection)
        #expect(try connection.value(Int.self, "PRAGMA page_count") ?? 0 > 1_500)
        #expect(try connection.value(Int.self, "SELECT count(*) FROM t") == 10_000)
        #expect(
            try connection.value(Int.self, "SELECT sum(length(b)) FROM t") == (0..<10_000).reduce(0) { $0 + $1 % 1_500 }
        )
    }

    @Test("A page that is rewritten before its older version reaches the disk is stored in its newest version")
    func rewrites() throws {
        try sealing(cachePages: 10) { connection in
            try fill(connection, rows: 2_000)
            try connection.transaction {
                for round in 0..<20 {
                    try connection.execute("UPDATE t SET a = \("round \(round)") || id WHERE id % 20 >= \(round)")
                }
            }
        }
        let connection = try open()
        defer { connection.close() }
        try expectAuthentic(connection)
        #expect(try connection.value(Int.self, "SELECT count(*) FROM t WHERE a <> 'round ' || (id % 20) || id") == 0)
    }

    @Test("A closed file can be opened again and grow")
    func opensAgain() throws {
        try sealing { try fill($0, rows: 500) }
        try sealing { connection in
            #expect(try connection.value(Int.self, "SELECT count(*) FROM t") == 500)
            try connection.execute("INSERT INTO t SELECT id + 500, a, b FROM t")
        }
        let connection = try open()
        defer { connection.close() }
        try expectAuthentic(connection)
        #expect(try connection.value(Int.self, "SELECT count(*) FROM t") == 1_000)
    }

    @Test("A page that was changed on the disk is not read back")
    func refusesForgedPages() throws {
        try sealing { try fill($0, rows: 500) }
        let file = try DatabaseFile(path: path, access: .readWrite)
        let byte = try #require(try file.read(at: 4_096 + 100, count: 1).first)
        try file.write([byte ^ 1], at: 4_096 + 100)
        let error = #expect(throws: DatabaseError.self) {
            try sealing { _ = try $0.value(Int.self, "SELECT sum(length(b)) FROM t") }
        }
        #expect(error?.isInputOutput == true)
    }

    @Test("A sealed file contains no byte of a row, and no repeated block")
    func hidesRows() throws {
        try sealing { connection in
            try connection.execute("CREATE TABLE copy.t(a TEXT)")
            for _ in 0..<200 {
                try connection.execute("INSERT INTO t VALUES (\(String(repeating: "needle ", count: 500)))")
            }
        }
        let bytes = try Data(contentsOf: URL(filePath: path))
        #expect(bytes.range(of: Data("needle".utf8)) == nil)
        #expect(bytes.range(of: Data("SQLite format".utf8)) == nil)
        let vectors = stride(from: 4_016, to: bytes.count, by: 4_096).map { bytes[$0..<($0 + 16)] }
        #expect(Set(vectors).count == vectors.count)
    }

    @Test("A journal, which would be plaintext, cannot be opened through the layer")
    func refusesJournals() throws {
        let file = try file()
        defer { withExtendedLifetime(file) {} }
        let connection = try attach(layer(file, Self.start))
        defer { connection.close() }
        #expect(throws: DatabaseError.self) { try connection.execute("CREATE TABLE copy.t(a)") }
        #expect(!FileManager.default.fileExists(atPath: path + "-journal"))
    }
}
