internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Temporary files of SQLite: sorters and temporary tables that leave the memory.
struct EncryptedScratchTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let marker = "the text of a row that must not be on the disk"

    /// A statement that needs more temporary space than fits in its caches.
    static let spilling = [
        "CREATE INDEX i ON t(lower(text), id)",
        "CREATE TEMP TABLE other AS SELECT * FROM t",
        "SELECT count(DISTINCT text || id) FROM t",
        "SELECT count(*) FROM (SELECT text, row_number() OVER (ORDER BY text, id DESC) FROM t)",
    ]

    /// A database of about 6 MB, opened through a layer whose temporary files the test can read.
    private func open(_ key: CipherKey?, sortsInFiles: Bool = true, _ files: ScratchFiles) throws -> Connection {
        let path = folder.path("app.db")
        let layer = try FileLayer(guarding: path) { files.make() }
        let connection = try Connection(path: path, mode: .create, through: layer)
        if let key { try connection.setKey(key, settings: CipherSettings()) }
        try connection.executeScript(
            text: """
                PRAGMA journal_mode = WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, text);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
                INSERT INTO t SELECT i, '\(Self.marker) ' || (i * 7919 % 40009) || hex(zeroblob(40)) FROM n;
                PRAGMA cache_size = 10;
                """)
        if sortsInFiles { try connection.execute("PRAGMA temp_store = FILE") }
        return connection
    }

    @Test(
        "What leaves the memory is written encrypted, into the files that the layer opens", arguments: Self.spilling,
        [true, false])
    func encrypted(statement: String, isEncrypted: Bool) throws {
        guard Engine.current.sqliteVersionNumber >= 3_025_000 || !statement.contains("OVER") else { return }
        let files = ScratchFiles(folder)
        let connection = try open(isEncrypted ? TestKeys.raw() : nil, files)
        defer { connection.close() }
        try connection.executeScript(text: statement)
        #expect(files.written > 1 << 20)
        #expect(!files.contain(Self.marker))
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    @Test("A connection that does not sort in files opens none", arguments: Self.spilling)
    func inMemory(statement: String) throws {
        guard Engine.current.sqliteVersionNumber >= 3_025_000 || !statement.contains("OVER") else { return }
        let files = ScratchFiles(folder)
        let connection = try open(nil, sortsInFiles: false, files)
        defer { connection.close() }
        try connection.executeScript(text: statement)
        #expect(files.descriptors.isEmpty)
    }

    @Test("If no temporary file can be created, SQLite sorts in memory")
    func noFile() throws {
        let files = ScratchFiles(folder, isPossible: false)
        let connection = try open(nil, files)
        defer { connection.close() }
        for statement in Self.spilling.prefix(3) { try connection.executeScript(text: statement) }
        #expect(files.requests > 0)
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    @Test("By default, temporary files are in the database's folder, and have no name")
    func noName() throws {
        let path = folder.path("app.db")
        let connection = try ConnectionProfile.scratch.open(path)
        defer { connection.close() }
        try connection.executeScript(
            text: """
                PRAGMA temp_store = FILE; PRAGMA cache_size = 10; CREATE TEMP TABLE t(a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
                INSERT INTO t SELECT '\(Self.marker)' || hex(zeroblob(1000)) FROM n;
                """)
        #expect(try folder.names == ["app.db"])
        #if os(Linux)
            let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
            }
            #expect(open.contains { $0.hasPrefix(folder.path("")) && $0.hasSuffix("(deleted)") })
        #endif
    }

    @Test("A file contains what was written to it, wherever the parts begin and end", arguments: 1...8)
    func model(seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed))
        let files = ScratchFiles(folder)
        let descriptor = try #require(files.make())
        defer { close(descriptor) }
        let scratch = try #require(EncryptedScratch(DescriptorFile(descriptor: descriptor, path: "")))
        var model: [UInt8] = []
        for _ in 0..<400 {
            let offset = random.oneIn(3) ? model.count : random.below(40_000)
            let count = random.oneIn(3) ? 4096 : random.below(5_000)
            switch random.below(8) {
            case 0:
                // SQLite truncates only to fewer bytes, and reads only what it has written.
                model.removeLast(max(0, model.count - offset))
                #expect(scratch.truncate(to: Int64(offset)) == 0)
            case 1...4 where offset <= model.count:
                let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
                model += Array(repeating: 0, count: max(0, offset + count - model.count))
                model.replaceSubrange(offset..<offset + count, with: bytes)
                #expect(scratch.write(bytes, count: count, offset: Int64(offset)) == 0)
            default:
                var bytes = [UInt8](repeating: 1, count: count)
                let result = scratch.read(into: &bytes, count: count, offset: Int64(offset))
                let expected = Array(model.dropFirst(offset).prefix(count))
                #expect(result == (expected.count < count ? DescriptorFile.shortRead : 0))
                #expect(bytes == expected + Array(repeating: 0, count: count - expected.count))
            }
            var size: Int64 = 0
            #expect(scratch.getSize(&size) == 0)
            #expect(size == Int64(model.count))
        }
    }

    @Test("Bytes that were never written are zeros, and equal blocks are stored as different bytes")
    func holes() throws {
        let files = ScratchFiles(folder)
        let descriptor = try #require(files.make())
        defer { close(descriptor) }
        let scratch = try #require(EncryptedScratch(DescriptorFile(descriptor: descriptor, path: "")))
        let block = [UInt8](repeating: 7, count: 4096)
        #expect(scratch.write(block, count: 4096, offset: 1 << 20) == 0)
        var read = block
        #expect(scratch.read(into: &read, count: 4096, offset: 4096) == 0)
        #expect(read == [UInt8](repeating: 0, count: 4096))
        #expect(scratch.read(into: &read, count: 4096, offset: 1 << 20) == 0)
        #expect(read == block)
        #expect(scratch.write(block, count: 4096, offset: 0) == 0)
        let first = files.bytes(0..<64)
        #expect(scratch.write(block, count: 4096, offset: 0) == 0)
        #expect(files.bytes(0..<64) != first)
    }

    @Test(
        "A failure to write ends the statement with SQLite's code for a full disk",
        .enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
    func full() throws {
        let connection = try Connection(
            path: folder.path("app.db"), mode: .create,
            through: FileLayer(guarding: folder.path("app.db"), makeScratch: ScratchFiles.onFullDisk))
        defer { connection.close() }
        try connection.executeScript(
            text: """
                CREATE TABLE t(a); PRAGMA cache_size = 10; PRAGMA temp_store = FILE;
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
                INSERT INTO t SELECT i || hex(zeroblob(1000)) FROM n;
                """)
        let error = #expect(throws: DatabaseError.self) { try connection.execute("CREATE INDEX i ON t(a || a)") }
        #expect(error?.isFull == true)
        #expect(try connection.value(Int.self, "SELECT count(*) FROM sqlite_master") == 1)
    }

    @Test("During a transaction, sorters can leave the memory, but the journals of savepoints cannot")
    func savepoints() throws {
        let files = ScratchFiles(folder)
        let connection = try open(TestKeys.raw(), sortsInFiles: false, files)
        defer { connection.close() }
        let journals = try connection.transaction {
            try connection.sortingInFiles {
                try connection.execute("SAVEPOINT s")
                try connection.execute("UPDATE t SET text = upper(text)")
                let journals = files.descriptors.count
                try connection.execute("ROLLBACK TO s")
                try connection.execute(SQL(text: Self.spilling[0]))
                return journals
            }
        }
        #expect(journals == 0)
        #expect(files.written > 1 << 20)
        #expect(try connection.value(Int.self, "PRAGMA temp_store") == 2)
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    @Test("Temporary tables are kept")
    func temporaryTables() throws {
        let connection = try open(nil, sortsInFiles: false, ScratchFiles(folder))
        defer { connection.close() }
        try connection.execute("CREATE TEMP TABLE kept(a)")
        try connection.transaction { try connection.sortingInFiles { try connection.execute("DELETE FROM t") } }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM kept") == 0)
        #expect(try connection.value(Int.self, "PRAGMA temp_store") == 2)
    }

    @Test("After a failure, sorters stay in memory again")
    func failure() throws {
        let connection = try open(nil, sortsInFiles: false, ScratchFiles(folder))
        defer { connection.close() }
        #expect(throws: DatabaseError.self) {
            try connection.transaction { try connection.sortingInFiles { try connection.execute("DELETE FROM u") } }
        }
        #expect(try connection.value(Int.self, "PRAGMA temp_store") == 2)
    }
}

/// Temporary files that keep their bytes after SQLite has closed them.
private final class ScratchFiles {
    private let folder: TemporaryFolder
    private let isPossible: Bool
    private(set) var requests = 0
    private(set) var descriptors: [Int32] = []

    init(_ folder: TemporaryFolder, isPossible: Bool = true) {
        self.folder = folder
        self.isPossible = isPossible
    }

    /// Opens a device that has no space.
    static func onFullDisk() -> Int32? { open("/dev/full", O_RDWR) }

    deinit { for descriptor in descriptors { close(descriptor) } }

    func make() -> Int32? {
        requests += 1
        guard isPossible else { return nil }
        let path = folder.path("scratch-\(requests)")
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        unlink(path)
        descriptors.append(descriptor)
        return dup(descriptor)
    }

    var written: Int {
        descriptors.map { descriptor in
            var status = stat()
            return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
        }.max() ?? 0
    }

    func bytes(_ range: Range<Int>) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        let count = pread(descriptors[0], &bytes, range.count, off_t(range.lowerBound))
        return Array(bytes.prefix(max(0, count)))
    }

    func contain(_ text: String) -> Bool {
        descriptors.contains { descriptor in
            var status = stat()
            fstat(descriptor, &status)
            var data = Data(count: Int(status.st_size))
            let count = data.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
            return data.prefix(max(0, count)).range(of: Data(text.utf8.prefix(20))) != nil
        }
    }
}
