internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// The encryption of a legacy database while its store is open.
@Suite(.timeLimit(.minutes(20)))
struct OpenStoreEncryptionTests {
    private let opening: OpenEncryptionFixture
    private var folder: TemporaryFolder { opening.folder }
    private var fixture: StoreFixture { opening.fixture }

    init() throws { opening = try OpenEncryptionFixture() }

    /// Returns what SQL can see, except for the history, to which the encryption adds an entry, and the counter that
    /// this changes.
    private func dump(_ store: EncryptedStore) async throws -> [String] {
        try await store.read {
            try DatabaseDump($0).lines.filter {
                !$0.hasPrefix("cipherstore_history") && !$0.hasPrefix("schema_version")
                    && !$0.contains(Self.hexadecimal("cipherstore_history"))
            }
        }
    }

    private static func hexadecimal(_ text: String) -> String {
        text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    // MARK: Results

    @Test("A store whose tasks write without a pause is encrypted meanwhile, and keeps every row")
    func neverPausing() async throws {
        try opening.writeLegacy()
        var fixture = fixture
        // Anything that waits for a turn outside of the store's own queue soon gives up.
        fixture.options.busyTimeout = .milliseconds(100)
        let store = try await fixture.open()
        let conversion = try #require(store.conversion)
        let ended = Gate()
        let written = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    var count = 0
                    while ended.count == 0 {
                        try await store.write { db in
                            try db.execute("INSERT INTO chat VALUES ('bo', 'new')")
                            // The transaction lasts some milliseconds.
                            let count: SQL = """
                                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
                                SELECT sum(i) FROM n
                                """
                            _ = try db.value(Int.self, count)
                        }
                        count += 1
                    }
                    return count
                }
            }
            defer { ended.arrive() }
            #expect(try await conversion.value.outcome == .encrypted)
            ended.arrive()
            return try await group.reduce(0, +)
        }
        #expect(
            try await store.read { try $0.value(Int.self, "SELECT count(*) FROM chat WHERE uid = 'bo'") } == written)
        await store.close()
        #expect(try !LegacyFile.startsAsPlaintext(fixture.path))
    }

    @Test("A legacy file is opened as it is and encrypted while open, and everything visible to SQL stays the same")
    func encrypts() async throws {
        let told = SharedValue<[String]>([])
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = { event in
                if case .encrypted = event.kind { told.change { $0.append("encrypted") } }
            }
        }
        guard case .running = conversion.state else { throw CocoaError(.featureUnsupported) }
        let before = try await dump(store)
        let fractions = Task { await conversion.progress.reduce(into: []) { $0.append($1.fraction) } }
        gate.arrive()
        let report = try await conversion.value
        #expect(report.outcome == .encrypted)
        #expect(report.warnings.besidesLeases == [])
        #expect(report.backup == nil)
        guard case .finished = conversion.state else { throw CocoaError(.featureUnsupported) }
        let seen = await fractions.value
        #expect(seen == seen.sorted())
        #expect(told.value == ["encrypted"])
        #expect(try await dump(store) == before)
        let events = try await store.read {
            try $0.values(String.self, "SELECT event FROM cipherstore_history ORDER BY rowid")
        }
        #expect(events.last == "encrypted")
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test("A new database and an encrypted one have no conversion")
    func notNeeded() async throws {
        let created = try await fixture.open()
        #expect(created.conversion == nil)
        await created.close()
        let opened = try await fixture.open()
        #expect(opened.conversion == nil)
        await opened.close()
    }

    @Test("If eight tasks write during the conversion, no acknowledged row is lost, and observers see the last row")
    func underLoad() async throws {
        let (store, conversion, gate) = try await opening.openHeld()
        let (isDone, written) = (Gate(), Gate())
        let observed = Task {
            for try await bodies in store.observe({ try $0.values(String.self, "SELECT body FROM chat") })
            where bodies.contains("last") {
                return bodies.count
            }
            return 0
        }
        let rows = try await withThrowingTaskGroup(of: [String].self) { group in
            for task in 0..<8 {
                group.addTask {
                    var acknowledged: [String] = []
                    while isDone.count == 0 {
                        let body = "\(task) \(acknowledged.count)"
                        try await store.write { db in
                            try db.execute("INSERT INTO chat(uid, body) VALUES ('ana', \(body))")
                            try db.execute("UPDATE big SET body = randomblob(8000) WHERE id = abs(random()) % 400")
                        }
                        acknowledged.append(body)
                        written.arrive()
                    }
                    return acknowledged
                }
            }
            await written.wait(until: 20)
            gate.arrive()
            _ = try await conversion.value
            let count = written.count
            await written.wait(until: count + 20)
            isDone.arrive()
            return try await group.reduce(into: ["old"]) { $0 += $1 }
        }
        let bodies = try await store.bodies()
        #expect(Set(bodies) == Set(rows))
        #expect(bodies.count == rows.count)
        try await store.insert("last")
        #expect(try await observed.value == rows.count + 1)
        try await opening.check(store, isEncrypted: true, bodies: bodies + ["last"])
    }

    @Test(
        "Changes that alter the schema or move all pages during the conversion are in the copy",
        arguments: [
            "CREATE TABLE more(a); INSERT INTO more SELECT body FROM big; ALTER TABLE chat ADD COLUMN x",
            "DROP TABLE big", "DELETE FROM big WHERE id % 2 = 0; VACUUM",
        ])
    func schema(change: String) async throws {
        let (store, conversion, gate) = try await opening.openHeld()
        try await store.writeWithoutTransaction { try $0.executeScript(text: change) }
        let before = try await dump(store)
        gate.arrive()
        _ = try await conversion.value
        #expect(try await dump(store) == before)
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test("With keepBackup the final state of the plaintext file is kept")
    func backup() async throws {
        let (store, conversion, gate) = try await opening.openHeld { $0.configuration.encryption.keepBackup = true }
        try await store.insert("meanwhile")
        gate.arrive()
        let report = try await conversion.value
        #expect(report.backup == fixture.path + "-plaintext")
        await store.close()
        let backup = try Connection(path: fixture.path + "-plaintext", mode: .readWrite)
        defer { backup.close() }
        #expect(try backup.values(String.self, "SELECT body FROM chat ORDER BY rowid") == ["old", "meanwhile"])
    }

    // MARK: Waiting

    @Test("A running read postpones the last step, and the app's writes continue")
    func longRead() async throws {
        let (isPostponed, mayEnd) = (Gate(), Gate())
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = { if case .encryptionPostponed = $0.kind { isPostponed.arrive() } }
        }
        let isReading = Gate()
        let read = Task {
            try await store.read { db in
                let count = try db.value(Int.self, "SELECT count(*) FROM chat")
                isReading.arrive()
                mayEnd.block()
                return try db.value(Int.self, "SELECT count(*) FROM chat") == count
            }
        }
        await isReading.wait()
        gate.arrive()
        await isPostponed.wait()
        guard case .waiting(let reason as StoreError) = conversion.state else { throw CocoaError(.featureUnsupported) }
        #expect(reason.code == .busy)
        try await store.insert("meanwhile")
        #expect(try await store.bodies() == ["old", "meanwhile"])
        mayEnd.arrive()
        #expect(try await read.value)
        _ = try await conversion.value
        try await opening.check(store, isEncrypted: true, bodies: ["old", "meanwhile"])
    }

    @Test("A key that changes while a read postpones the last step prevents the switch, and the copy is discarded")
    func keyChangesDuringRead() async throws {
        let (isReading, mayEnd) = (Gate(), Gate())
        let isNew = SharedValue(false)
        let provider = TestKeys.provider { try isNew.value ? TestKeys.raw(12) : TestKeys.raw() }
        let (store, conversion, gate) = try await opening.openHeld(provider) {
            $0.options.events = { event in
                guard case .encryptionPostponed = event.kind else { return }
                isNew.change { $0 = true }
                mayEnd.arrive()
            }
        }
        let read = Task {
            try await store.read { db in
                try db.proveReadable()
                isReading.arrive()
                mayEnd.block()
            }
        }
        await isReading.wait()
        gate.arrive()
        #expect(try await code { try await conversion.value } == .keyChanged)
        try await read.value
        try await opening.check(store, isEncrypted: false, bodies: ["old"])
    }

    @Test(
        "Another process that has the file open is named, and its writes are in the copy after it has ended",
        .enabled(if: LinuxCalls.areUsed))
    func otherProcess() async throws {
        let isPostponed = Gate()
        try opening.writeLegacy()
        let other = try TestProgram.built("CipherLockHolder").start(["sql", fixture.path])
        try #require(try other.line() == "ready")
        var fixture = fixture
        fixture.options.events = { if case .encryptionPostponed = $0.kind { isPostponed.arrive() } }
        let store = try await fixture.open()
        let conversion = try #require(store.conversion)
        await isPostponed.wait()
        guard case .waiting(let reason as StoreError) = conversion.state else { throw CocoaError(.featureUnsupported) }
        #expect(reason.code == .busy)
        #expect(reason.detail.contains("CipherLockHolde"))
        #expect(try other.ask("INSERT INTO chat VALUES ('bob', 'theirs')") == "ok")
        try await store.insert("ours")
        #expect(try other.ask("SELECT count(*) FROM chat") == "ok 3")
        _ = try other.wait()
        _ = try await conversion.value
        try await opening.check(store, isEncrypted: true, bodies: ["old", "theirs", "ours"])
    }

    @Test("A paused conversion does nothing, and one with a small budget still finishes")
    func paused() async throws {
        let (store, conversion, gate) = try await opening.openHeld()
        conversion.isPaused = true
        conversion.budget = StoreConversion.Budget(share: 0.5, bytesPerSecond: 100_000_000)
        gate.arrive()
        try await store.insert("paused")
        guard case .running = conversion.state else { throw CocoaError(.featureUnsupported) }
        #expect(try DatabaseFile(path: fixture.path).read(at: 0, count: 6) == Array("SQLite".utf8))
        conversion.isPaused = false
        _ = try await conversion.value
        try await opening.check(store, isEncrypted: true, bodies: ["old", "paused"])
    }

    // MARK: With other operations

    @Test("A backup that is begun while the copy takes the file's place is made of the encrypted file")
    func backupAtSwitch() async throws {
        let (isSwapping, mayGoOn) = (Gate(), Gate())
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = {
                guard case .stage(.swapping) = $0.kind, isSwapping.count == 0 else { return }
                isSwapping.arrive()
                mayGoOn.block()
            }
        }
        gate.arrive()
        await isSwapping.wait()
        let backup = Task {
            try await store.backup(to: folder.url.appendingPathComponent("backup.db"), keyProvider: TestKeys.provider())
        }
        // The backup has the file's key by now, or waits for it.
        while !store.backups.areRunning { await Task.yield() }
        mayGoOn.arrive()
        #expect(try await backup.value.outcome == .backedUp)
        _ = try await conversion.value
        try FileManager.default.removeItem(atPath: folder.path("backup.db"))
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test("A running backup postpones the last step, and the copy is kept")
    func runningBackup() async throws {
        let (isPostponed, isBackingUp, mayGoOn, copies) = (Gate(), Gate(), Gate(), Gate())
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = {
                if case .encryptionPostponed = $0.kind { isPostponed.arrive() }
                if case .stage(.proving) = $0.kind { copies.arrive() }
            }
        }
        let backup = Task {
            try await store.backup(
                to: folder.url.appendingPathComponent("backup.db"), keyProvider: TestKeys.provider()
            ) {
                guard $0.stage == .proving, isBackingUp.count == 0 else { return }
                isBackingUp.arrive()
                mayGoOn.block()
            }
        }
        await isBackingUp.wait()
        gate.arrive()
        await isPostponed.wait(until: 4)
        #expect(copies.count == 1)
        mayGoOn.arrive()
        _ = try await backup.value
        _ = try await conversion.value
        try FileManager.default.removeItem(atPath: folder.path("backup.db"))
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test("A long log that a running read preserves does not cause another copy")
    func longLog() async throws {
        let (isPostponed, isReading, mayEnd, copies) = (Gate(), Gate(), Gate(), Gate())
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = {
                if case .encryptionPostponed = $0.kind { isPostponed.arrive() }
                if case .stage(.proving) = $0.kind { copies.arrive() }
            }
        }
        let read = Task {
            try await store.read { db in
                _ = try db.value(Int.self, "SELECT count(*) FROM chat")
                isReading.arrive()
                mayEnd.block()
            }
        }
        await isReading.wait()
        for _ in 0..<2 { try await store.write { try $0.execute("UPDATE big SET body = zeroblob(90000)") } }
        #expect(try FileSystem.size(fixture.path + "-wal") ?? 0 > 64 << 20)
        gate.arrive()
        await isPostponed.wait(until: 4)
        #expect(copies.count == 1)
        mayEnd.arrive()
        try await read.value
        _ = try await conversion.value
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test("Two stores of one process wait for each other, and once one of them is closed, the other is encrypted")
    func twoStores() async throws {
        let (store, conversion, gate) = try await opening.openHeld()
        let other = try await fixture.open()
        gate.arrive()
        try await store.insert("one")
        try await other.insert("two")
        #expect(try await store.bodies() == ["old", "one", "two"])
        await other.close()
        _ = try await conversion.value
        try await opening.check(store, isEncrypted: true, bodies: ["old", "one", "two"])
    }

    // MARK: Early ends

    @Test("A canceled conversion leaves the plaintext file, with which the store continues")
    func cancelled() async throws {
        let (store, conversion, gate) = try await opening.openHeld()
        conversion.cancel()
        gate.arrive()
        #expect(try await code { try await conversion.value } == .cancelled)
        try await opening.check(store, isEncrypted: false, bodies: ["old"])
    }

    @Test("Closing the store ends the conversion and leaves the plaintext file", arguments: [false, true])
    func closed(isPaused: Bool) async throws {
        let (store, conversion, gate) = try await opening.openHeld()
        conversion.isPaused = isPaused
        gate.arrive()
        await store.close()
        let start = try DatabaseFile(path: fixture.path).read(at: 0, count: 6)
        #expect(try folder.names == ["app.db"])
        if case .failed(let error as StoreError) = conversion.state {
            #expect(error.code == .cancelled)
            #expect(start == Array("SQLite".utf8))
        } else {
            // The last step had already been done.
            #expect(start != Array("SQLite".utf8))
        }
        #expect(try await StoreFixture(folder).open().bodies() == ["old"])
    }

    @Test("A suspended store has no file open, and is encrypted after it is resumed")
    func suspended() async throws {
        let (store, conversion, gate) = try await opening.openHeld()
        try await store.insert("before")
        let suspension = Task { await store.suspend() }
        while try await !opening.isSuspended(store) { await Task.yield() }
        gate.arrive()
        await suspension.value
        let other = try fixture.connection(isEncrypted: false)
        // Nobody else is connected, so the store can leave WAL mode.
        #expect(try other.value(String.self, "PRAGMA journal_mode = DELETE") == "delete")
        try other.execute("INSERT INTO chat VALUES ('bob', 'theirs')")
        other.close()
        store.resume()
        _ = try await store.bodies()
        let report = try await conversion.value
        #expect(report.outcome == .encrypted)
        try await opening.check(store, isEncrypted: true, bodies: ["old", "before", "theirs"])
    }

    @Test(
        "A provider that fails or returns two different keys, even after the copy is made, leaves the plaintext file",
        arguments: [1, 2, 3], [true, false])
    func provider(call: Int, fails: Bool) async throws {
        try opening.writeLegacy()
        let calls = Gate()
        let store = try await fixture.open(
            TestKeys.provider {
                calls.arrive()
                guard calls.count == call else { return try TestKeys.raw() }
                if fails { throw CocoaError(.fileNoSuchFile) }
                return try TestKeys.raw(12)
            })
        let conversion = try #require(store.conversion)
        #expect(try await code { try await conversion.value } == (fails ? .keyUnavailable : .keyChanged))
        try await opening.check(store, isEncrypted: false, bodies: ["old"])
    }
}
