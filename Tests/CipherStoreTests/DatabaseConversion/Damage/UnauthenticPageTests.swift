internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherPageOpening
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Encrypted files with a page that is not authentic, which SQLCipher reads as zeros until it reads another page.
struct UnauthenticPageTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder(inMemory: true) }

    private var path: String { folder.path("app.db") }

    private static let script = """
        CREATE TABLE t(a INTEGER PRIMARY KEY, b);
        INSERT INTO t VALUES (1, printf('PAY 100%.*cVOID', 9000, 'x')), (2, zeroblob(20000)), (3, 'short');
        CREATE TABLE spare(a); INSERT INTO spare VALUES (zeroblob(40000)); DROP TABLE spare;
        """

    private static let queries: [SQL] = [
        "SELECT b FROM t WHERE a = 1", "SELECT b FROM t WHERE a = 2", "SELECT instr(b, 'VOID') FROM t WHERE a = 1",
        "SELECT count(*) FROM t",
    ]

    private func make(_ settings: CipherSettings) throws -> Data {
        try LegacyFile.write(path, key: TestKeys.raw(), settings: settings, script: Self.script)
        return try Data(contentsOf: URL(filePath: path))
    }

    private func answers(_ settings: CipherSettings) -> [Value?] {
        Self.queries.map { query in
            try? {
                // The reader and the transaction of the command `query`.
                try DatabaseReader(path: path).read(provider: TestKeys.provider(), formats: [settings]) {
                    connection, _ in
                    try connection.transaction(.deferred) {
                        let value = try connection.value(Value.self, query)
                        try connection.checkAuthenticity()
                        return value
                    }
                }
            }()
        }
    }

    @Test(
        "No query returns anything but the owner's values from a file with a page that is not authentic",
        arguments: CipherSettings.authenticated())
    func queries(settings: CipherSettings) throws {
        let whole = try make(settings)
        let owned = answers(settings)
        #expect(!owned.contains(nil))
        let size = settings.pageSize
        var refused = 0
        for page in 2...(whole.count / size) {
            var flipped = whole
            flipped[(page - 1) * size + 20] ^= 1
            var blank = whole
            blank.replaceSubrange((page - 1) * size..<page * size, with: Data(count: size))
            for data in [flipped, blank] {
                try data.write(to: URL(filePath: path))
                for (query, (answer, value)) in zip(answers(settings), owned).enumerated() {
                    #expect(answer == nil || answer == value, "query \(query), page \(page), zeros: \(data == blank)")
                    refused += answer == nil ? 1 : 0
                }
            }
        }
        #expect(refused > 0)
        // The last page may belong to a row.
        for rest in [0, 1, 100] {
            try (whole.dropLast(size) + Data(count: rest)).write(to: URL(filePath: path))
            #expect(zip(answers(settings), owned).allSatisfy { $0 == nil || $0 == $1 }, "\(rest)")
        }
    }

    @Test(
        "A store throws instead of returning zeros of a page that is not authentic, and commits nothing after reading one"
    )
    func store() async throws {
        let fixture = StoreFixture(folder)
        var store = try await fixture.open()
        try await store.write { db in
            try db.executeScript(text: Self.script + "; CREATE TABLE copy(b)")
        }
        let texts = try await store.read { try $0.values(Value.self, "SELECT b FROM t ORDER BY a") }
        await store.close()
        let file = URL(filePath: fixture.path)
        let whole = try Data(contentsOf: file)
        let size = CipherSettings().pageSize
        var refused = 0
        for page in 2...(whole.count / size) {
            var data = whole
            data[(page - 1) * size + 20] ^= 1
            try data.write(to: file)
            guard let damaged = try? await fixture.open() else { continue }
            store = damaged
            for row in 1...3 {
                let read = try? await store.read { try $0.value(Value.self, "SELECT b FROM t WHERE a = \(row)") }
                #expect(read == nil || read == texts[row - 1], "page \(page)")
                refused += read == nil ? 1 : 0
                _ = try? await store.write { try $0.execute("INSERT INTO copy SELECT b FROM t WHERE a = \(row)") }
            }
            await store.close()
            let changed = try Data(contentsOf: file)
            // Only what the owner wrote may have been copied; the damaged page is put right to read it.
            var repaired = changed
            repaired.replaceSubrange((page - 1) * size..<page * size, with: whole[(page - 1) * size..<page * size])
            if changed[(page - 1) * size..<page * size] != data[(page - 1) * size..<page * size] { repaired = changed }
            try repaired.write(to: file)
            guard let reread = try? await fixture.open() else { continue }
            let copied = try await reread.read { try $0.values(Value.self, "SELECT b FROM copy") }
            #expect(copied.allSatisfy(texts.contains), "page \(page)")
            await reread.close()
        }
        #expect(refused > 0)
    }

    @Test("A check claims authentication of every page only if each page of the file was authentic, used or not")
    func claims() throws {
        let settings = CipherSettings()
        let whole = try make(settings)
        let size = settings.pageSize
        func verified() throws -> Verification {
            try Verification.run(at: DatabasePaths(path), provider: TestKeys.provider(), formats: [settings])
        }
        let sound = try verified()
        #expect(sound.isSound)
        #expect(sound.authentication == (Engine.current.cipherMajor >= 4 ? .everyPage : .everyPageInUse))
        for page in 1...(whole.count / size) {
            var data = whole
            data[(page - 1) * size + 20] ^= 1
            try data.write(to: URL(filePath: path))
            guard let found = try? verified() else { continue }
            #expect(found.isSound || found.authentication == nil, "page \(page)")
            #expect(Engine.current.cipherMajor < 4 || found.authentication == nil, "page \(page)")
        }
    }

    @Test(
        "Nothing vouches for a definition that ends where an authentic page does, and no conversion takes it",
        arguments: CipherSettings.authenticated())
    func cutDefinition(settings: CipherSettings) throws {
        // The end of the view's definition is on the last page.
        let gap = String(repeating: " ", count: settings.pageSize + 200)
        try LegacyFile.write(
            path, key: TestKeys.raw(), settings: settings,
            script: """
                CREATE TABLE t(a INTEGER PRIMARY KEY, owner TEXT);
                INSERT INTO t(owner) VALUES ('me'), ('other'), ('other');
                CREATE VIEW v AS SELECT a FROM t\(gap) WHERE owner = 'me';
                """)
        func mine() throws -> Int? {
            try DatabaseReader(path: path).read(provider: TestKeys.provider(), formats: [settings]) { connection, _ in
                try connection.transaction(.deferred) {
                    let count = try connection.value(Int.self, "SELECT count(*) FROM v")
                    try connection.checkAuthenticity()
                    return count
                }
            }
        }
        #expect(try mine() == 1)
        var data = try Data(contentsOf: URL(filePath: path))
        data[data.count - settings.reservedBytes - 60] ^= 1
        try data.write(to: URL(filePath: path))
        #expect(throws: (any Error).self) { try mine() }
        let found = try? Verification.run(
            at: DatabasePaths(path), provider: TestKeys.provider(), formats: [settings])
        #expect(found?.isSound != true && found?.authentication == nil)
        let before = try FolderDigest(folder.url)
        // SQLCipher's own derivation delays the worker that compares the schema, so that the other compares all rows.
        let target = CipherSettings(kdfIterations: 64_000)
        for key in [{ try TestKeys.passphrase() }, { try TestKeys.raw(8) }] as [@Sendable () throws -> CipherKey] {
            let error = try storeError {
                try Rekeying(
                    at: DatabasePaths(path), oldKey: TestKeys.provider(), newKey: TestKeys.provider(key),
                    formats: [settings], newSettings: target, options: ConversionOptions()
                ).run()
            }
            #expect(error?.code == .corrupt)
            #expect(try FolderDigest(folder.url) == before)
        }
    }

    @Test("A free page of zeros is no damage, because SQLite need not have written it")
    func blankFreePage() throws {
        let settings = CipherSettings()
        var data = try make(settings)
        let size = settings.pageSize
        let bytes = data
        let geometry = try #require(PageGeometry(pageSize: size, reserved: settings.reservedBytes))
        let sealed = FilePages(
            ReadBytes(size: Int64(bytes.count)) { offset, buffer in
                buffer.copyBytes(from: bytes[Int(offset)..<(Int(offset) + buffer.count)])
                return true
            }, geometry, pageCount: UInt32(bytes.count / size))
        let key = try TestKeys.raw().rawKey(salt: SecretBytes(data.prefix(CipherKey.saltLength)), settings: settings)
        let pages = try EncryptedPages(sealed, key: key, settings: settings)
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { memory.deallocate() }
        let header = FileHeader(bytes: Array(try #require(try pages.lend(1, memory))), fileSize: Int64(bytes.count))
        let free = try FreeList(in: pages, first: header.firstFreePage) { throw $0 }
        #expect(free.leaves.count > 5)
        for page in free.leaves {
            data.replaceSubrange((Int(page) - 1) * size..<Int(page) * size, with: Data(count: size))
        }
        try data.write(to: URL(filePath: path))
        let found = try Verification.run(
            at: DatabasePaths(path), provider: TestKeys.provider(), formats: [settings])
        #expect(found.complaints == [])
    }
}
