internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherPageSealing
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Key changes of an open store.
@Suite(.timeLimit(.minutes(20)))
struct OpenKeyChangeTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    static let newKey = TestKeys.provider { try TestKeys.raw(11) }

    /// Opens a store with rows on more than a thousand pages, some of which are free.
    private func openFilled(_ script: String = "") async throws -> EncryptedStore {
        let store = try await StoreFixture(folder).open()
        try await store.writeWithoutTransaction { try $0.executeScript(text: script) }
        try await store.write { db in
            try db.executeScript(
                text: "CREATE TABLE big(id INTEGER PRIMARY KEY, body BLOB); CREATE INDEX big_body ON big(body);")
            for _ in 0..<400 { try db.execute("INSERT INTO big(body) VALUES (randomblob(9000))") }
            try db.execute("DELETE FROM big WHERE id % 10 = 0")
        }
        return store
    }

    private func dump(_ store: EncryptedStore) async throws -> DatabaseDump {
        try await store.read { try DatabaseDump($0) }
    }

    private func keyFits(_ provider: any KeyProvider) async throws -> Bool {
        do {
            let store = try await StoreFixture(folder).open(provider)
            await store.close()
            return true
        } catch let error as StoreError where error.code == .keyDoesNotFit {
            return false
        }
    }

    private func isSound() async throws -> Bool {
        let file = URL(filePath: StoreFixture(folder).path)
        return try await DatabaseConverter.verify(file, keyProvider: Self.newKey).isSound
    }

    // MARK: Contents

    /// Whether pages are copied while the store is in use, which needs CipherStore's own page format and an unnamed file.
    static let copiesAhead = FileLayer.canSeal(CipherSettings()) && LinuxCalls.areUsed

    @Test("Rows and everything visible to SQL are the same under the new key, and the store continues with it")
    func keeps() async throws {
        let store = try await openFilled()
        let before = try await dump(store)
        let report = try await store.changeKey(to: Self.newKey)
        #expect(report.outcome == .rekeyed)
        #expect(report.warnings.besidesLeases == [])
        #expect(try await dump(store) == before)
        try await store.insert("after")
        #expect(try await store.read { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        await store.close()
        #expect(try folder.names == ["app.db"])
        #expect(try await isSound())
        #expect(try await !keyFits(TestKeys.provider()))
        let again = try await StoreFixture(folder).open(Self.newKey)
        #expect(again.report.outcome == .opened)
        #expect(try await again.bodies() == ["after"])
        await again.close()
    }

    @Test("A passphrase's key is derived with a new salt, and the passphrase opens the file afterwards")
    func passphrase() async throws {
        let store = try await openFilled()
        let salt = try DatabaseFile(path: store.path).read(at: 0, count: 16)
        let provider = TestKeys.provider { try TestKeys.passphrase() }
        try await store.changeKey(to: provider)
        #expect(try DatabaseFile(path: store.path).read(at: 0, count: 16) != salt)
        await store.close()
        #expect(try await keyFits(provider))
    }

    @Test("The key can be changed back and forth, with rows written in between")
    func again() async throws {
        let store = try await openFilled()
        for round in 0..<4 {
            try await store.insert("\(round)")
            try await store.changeKey(to: round % 2 == 0 ? Self.newKey : TestKeys.provider())
        }
        #expect(try await store.bodies() == ["0", "1", "2", "3"])
        try await store.vacuum()
        await store.close()
        #expect(try await keyFits(TestKeys.provider()))
    }

    /// The changes that are written while pages are copied, in the order of the rounds.
    static let changes = [
        "INSERT INTO chat VALUES ('ana', 'meanwhile')",
        "UPDATE big SET body = randomblob(9000) WHERE id % 3 = 0",
        "DELETE FROM big WHERE id > 20",
        "INSERT INTO big(body) SELECT randomblob(9000) FROM big",
        "CREATE TABLE more(a); INSERT INTO more SELECT body FROM big; ALTER TABLE chat ADD COLUMN x",
        "DROP TABLE big",
        "DELETE FROM big WHERE id > 20; PRAGMA incremental_vacuum",
    ]

    @Test(
        "Changes made while pages are copied are in the copy, and neither writes nor reads wait for the copying",
        .enabled(if: copiesAhead), arguments: changes, ["", "PRAGMA auto_vacuum = 2; VACUUM;"])
    func meanwhile(change: String, script: String) async throws {
        let store = try await openFilled(script)
        let (expected, isWritten) = (SharedValue<DatabaseDump?>(nil), Gate())
        let report = try await store.changeKey(to: Self.newKey) { progress in
            // In the middle of the first round, when some pages are copied and others are not.
            guard progress.stage == .building, progress.fraction > 0.3, progress.fraction < 0.6, isWritten.count == 0
            else { return }
            isWritten.arrive()
            do {
                try store.writeBlocking { try $0.executeScript(text: change) }
                let dump = try store.readBlocking { try DatabaseDump($0) }
                expected.change { $0 = dump }
            } catch {
                Issue.record(error)
            }
        }
        #expect(report.outcome == .rekeyed)
        let dump = try await dump(store)
        #expect(expected.value == dump)
        let pages = try await store.read { try $0.value(Int64.self, "PRAGMA page_count") }
        await store.close()
        #expect(try FileSystem.size(store.path) == pages.map { $0 * Int64(CipherSettings().pageSize) })
        #expect(try await isSound())
    }

    @Test(
        "If eight tasks write while the key changes, no acknowledged row is lost, and observers see the last row")
    func underLoad() async throws {
        let store = try await openFilled()
        let (isDone, written) = (Gate(), Gate())
        let observed = Task {
            // The query returns 0 before the last row exists.
            let counts = store.observe {
                try $0.value(Int.self, "SELECT count(*) * count(CASE body WHEN 'last' THEN 1 END) FROM chat") ?? 0
            }
            for try await count in counts where count > 0 { return count }
            return 0
        }
        let rows = try await withThrowingTaskGroup(of: [String].self) { group in
            for task in 0..<8 {
                group.addTask {
                    var acknowledged: [String] = []
                    while isDone.count == 0 {
                        let body = "\(task) \(acknowledged.count)"
                        try await store.insert(body)
                        acknowledged.append(body)
                        written.arrive()
                    }
                    return acknowledged
                }
            }
            await written.wait(until: 20)
            try await store.changeKey(to: Self.newKey)
            let count = written.count
            await written.wait(until: count + 20)
            try await store.changeKey(to: TestKeys.provider())
            isDone.arrive()
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(try await Set(store.bodies()) == Set(rows))
        #expect(try await store.bodies().count == rows.count)
        try await store.insert("last")
        #expect(try await observed.value == rows.count + 1)
        await store.close()
        #expect(try await keyFits(TestKeys.provider()))
    }

    @Test("Of two simultaneous changes the second is refused or follows, and the last successful key applies")
    func twoAtOnce() async throws {
        let store = try await openFilled()
        let before = try await dump(store)
        func change(_ byte: UInt8) async -> UInt8? {
            do {
                try await store.changeKey(to: TestKeys.provider { try TestKeys.raw(byte) })
                return byte
            } catch let error as StoreError where error.code == .busy {
                return nil
            } catch {
                Issue.record(error)
                return nil
            }
        }
        async let first = change(21)
        async let second = change(22)
        let ended = await [first, second].compactMap(\.self)
        #expect(try await dump(store) == before)
        await store.close()
        try #require(!ended.isEmpty)
        var fitting: [UInt8] = []
        for byte in ended where try await keyFits(TestKeys.provider { try TestKeys.raw(byte) }) { fitting.append(byte) }
        #expect(fitting.count == 1)
    }

    @Test("After the change the store opens the file once per connection, and its locks exclude other processes")
    func locks() async throws {
        let store = try await openFilled()
        // The store has a connection before the change has ended.
        try await store.changeKey(
            to: .rotation(from: TestKeys.provider(), to: Self.newKey) { _ in
                try store.writeBlocking { try $0.execute("INSERT INTO chat(uid, body) VALUES ('ana', 'one')") }
            })
        let other = try TestProgram.built("CipherLockHolder").start(["sql", store.path, "11"])
        try #require(try other.line() == "ready")
        #expect(try other.ask("SELECT count(*) FROM chat") == "ok 1")
        // If it were the only connection to the file, it could leave WAL mode.
        #expect(try other.ask("PRAGMA journal_mode = DELETE").hasPrefix("error 5"))
        try await store.insert("two")
        #expect(try other.ask("SELECT count(*) FROM chat") == "ok 2")
        _ = try other.wait()
        await store.close()
    }

    // MARK: Properties of the file

    @Test("The key of a store in rollback mode is changed too, with rows written meanwhile")
    func rollbackMode() async throws {
        let fixture = StoreFixture(folder)
        await (try fixture.open()).close()
        // Another connection, which is reading, prevents the store from changing the mode.
        let other = try fixture.connection(isEncrypted: true)
        #expect(try other.value(String.self, "PRAGMA journal_mode = DELETE") == "delete")
        try other.execute("BEGIN")
        try other.proveReadable()
        var quick = fixture
        quick.options.busyTimeout = .milliseconds(50)
        let store = try await quick.open()
        other.close()
        try #require(store.report.warnings.contains { $0.contains("WAL mode") })
        try await store.insert("before")
        let isWritten = Gate()
        try await store.changeKey(to: Self.newKey) { progress in
            guard progress.stage == .building, Self.copiesAhead, isWritten.count == 0 else { return }
            isWritten.arrive()
            do {
                try store.writeBlocking { try $0.execute("INSERT INTO chat(uid, body) VALUES ('ana', 'meanwhile')") }
            } catch {
                Issue.record(error)
            }
        }
        try await store.insert("after")
        let expected = Self.copiesAhead ? ["before", "meanwhile", "after"] : ["before", "after"]
        #expect(try await store.bodies() == expected)
        await store.close()
        #expect(try await isSound())
    }

    /// Returns a page of the free list, which nobody reads.
    private func freePage(_ store: EncryptedStore) async throws -> Int64 {
        try await store.checkpoint()
        let trunk = try await store.read { db in
            try db.value(Int64.self, "SELECT max(rootpage) FROM sqlite_master WHERE name = 'spare'")
        }
        return try #require(trunk)
    }

    @Test(
        "A page of zeros and a free page that cannot be decrypted do not prevent a key change",
        arguments: [UInt8(0), 0xa5], [true, false])
    func unusualPages(byte: UInt8, isMeanwhile: Bool) async throws {
        let store = try await openFilled()
        try await store.write { db in
            try db.executeScript(text: "CREATE TABLE spare(a); INSERT INTO spare VALUES ('of no use')")
        }
        let page = try await freePage(store)
        try await store.write { try $0.execute("DROP TABLE spare") }
        try await store.checkpoint()
        let before = try await dump(store)
        await store.close()
        let path = store.path
        @Sendable func overwrite() throws {
            let file = try DatabaseFile(path: path, access: .readWrite)
            defer { file.close() }
            let size = CipherSettings().pageSize
            try file.write([UInt8](repeating: byte, count: size), at: (page - 1) * Int64(size))
        }
        if !isMeanwhile { try overwrite() }
        let (again, isWritten) = (try await StoreFixture(folder).open(), Gate())
        try await again.changeKey(to: Self.newKey) { progress in
            // Runs when every page has been copied once.
            guard isMeanwhile, progress.stage == .building, progress.bytes == progress.totalBytes, isWritten.count == 0
            else { return }
            isWritten.arrive()
            do { try overwrite() } catch { Issue.record(error) }
        }
        #expect(try await dump(again) == before)
        await again.close()
        #expect(try await keyFits(Self.newKey))
    }

    // MARK: The provider

    @Test("A rotation is notified once the file has the new key, and its failure is a warning")
    func rotation() async throws {
        let store = try await openFilled()
        let told = Gate()
        let path = store.path
        let report = try await store.changeKey(
            to: .rotation(from: TestKeys.provider(), to: Self.newKey) { database in
                #expect(database == path)
                // The store can be used meanwhile.
                try store.writeBlocking { try $0.execute("INSERT INTO chat VALUES ('ana', 'told')") }
                told.arrive()
                throw CocoaError(.fileNoSuchFile)
            })
        #expect(told.count == 1)
        #expect(report.warnings.besidesLeases.count == 1)
        #expect(report.warnings.besidesLeases.first?.hasPrefix("the previous key was not discarded") == true)
        #expect(try await store.bodies() == ["told"])
        await store.close()
    }
}
