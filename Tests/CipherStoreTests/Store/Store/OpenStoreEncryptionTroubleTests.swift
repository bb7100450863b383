internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Problems with an encryption while its store is open.
@Suite(.timeLimit(.minutes(20)))
struct OpenStoreEncryptionTroubleTests {
    private let opening: OpenEncryptionFixture

    init() throws { opening = try OpenEncryptionFixture() }

    @Test("A handler of conversion events can neither close nor suspend the store, and the encryption finishes")
    func handler() async throws {
        let (kept, codes) = (SharedValue<EncryptedStore?>(nil), SharedValue<[StoreError.Code?]>([]))
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = { event in
                guard let store = kept.value else { return }
                switch event.kind {
                case .stage, .encrypted:
                    for call in [{ try store.closeBlocking() }, { try store.suspendBlocking() }] {
                        do {
                            try call()
                            codes.change { $0.append(nil) }
                        } catch {
                            codes.change { $0.append((error as? StoreError)?.code) }
                        }
                    }
                default: break
                }
            }
        }
        kept.change { $0 = store }
        gate.arrive()
        _ = try await conversion.value
        #expect(codes.value.count >= 4)
        #expect(codes.value.allSatisfy { $0 == .misuse })
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test("Killed upgrades of the closed file do not prevent its encryption while it is open")
    func afterKilledUpgrades() async throws {
        try opening.writeLegacy()
        _ = try KilledRun(opening.folder, attempts: 9)
        let store = try await opening.fixture.open()
        #expect(store.report.warnings.besidesLeases == [])
        _ = try await store.conversion?.value
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test("After too many killed switches, the store opens the plaintext file without encrypting it, and reports this")
    func afterKilledSwitches() async throws {
        try opening.writeLegacy()
        _ = try KilledRun(opening.folder, .lastStep, attempts: 9)
        let plan = try await EncryptedStore.plan(
            opening.fixture.configuration, directory: opening.folder.url, keyProvider: TestKeys.provider())
        #expect(plan.step == .openPlaintext)
        let store = try await opening.fixture.open()
        #expect(store.conversion == nil)
        #expect(store.report.outcome == .openedPlaintext)
        #expect(store.report.warnings.count { $0.contains("started 9 times") } == 1)
        await store.close()
        // Upgrades of the closed file are counted separately.
        var next = opening.fixture
        next.configuration.encryption.when = .beforeOpening
        let again = try await next.open()
        #expect(again.report.outcome == .encrypted)
        await again.close()
    }

    @Test("A suspension waits for an attempt that a handler delays, and afterwards no file is open")
    func suspensionWaits() async throws {
        let (isPostponed, mayGoOn, mayEnd, isReading) = (Gate(), Gate(), Gate(), Gate())
        let order = SharedValue<[String]>([])
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = { event in
                switch event.kind {
                case .encryptionPostponed where isPostponed.count == 0:
                    isPostponed.arrive()
                    mayGoOn.block()
                    order.change { $0.append("handled") }
                case .suspended: order.change { $0.append("suspended") }
                default: break
                }
            }
        }
        let read = Task {
            try await store.read { _ in
                isReading.arrive()
                mayEnd.block()
            }
        }
        await isReading.wait()
        gate.arrive()
        await isPostponed.wait()
        mayEnd.arrive()
        try await read.value
        let suspension = Task { await store.suspend() }
        while try await !opening.isSuspended(store) { await Task.yield() }
        for _ in 0..<1_000 { await Task.yield() }
        mayGoOn.arrive()
        await suspension.value
        #expect(order.value == ["handled", "suspended"])
        #expect(try opening.folder.names == ["app.db"])
        store.resume()
        _ = try await conversion.value
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test(
        "If the conversion is canceled at any stage, the file is intact and in WAL mode",
        arguments: UpgradeStage.allCases)
    func cancelledAtStage(stage: UpgradeStage) async throws {
        let (kept, isCancelled) = (SharedValue<StoreConversion?>(nil), Gate())
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = { event in
                guard case .stage(stage) = event.kind, let conversion = kept.value else { return }
                conversion.cancel()
                isCancelled.arrive()
            }
        }
        kept.change { $0 = conversion }
        try await store.insert("meanwhile")
        gate.arrive()
        let outcome = await Task { try await conversion.value }.result
        if case .failure(let error as StoreError) = outcome { #expect(error.code == .cancelled) }
        #expect(isCancelled.count > 0)
        let isEncrypted = if case .success = outcome { true } else { false }
        try await opening.check(store, isEncrypted: isEncrypted, bodies: ["old", "meanwhile"])
    }

    @Test(
        "While another store of the process has the file open, no copy is made; once it is closed, the file is encrypted"
    )
    func anotherStore() async throws {
        try opening.writeLegacy()
        var other = opening.fixture
        other.configuration.encryption.isEnabled = false
        let first = try await other.open()
        let (isPostponed, codes, stages) = (Gate(), SharedValue<[StoreError.Code?]>([]), SharedValue(0))
        var fixture = opening.fixture
        fixture.options.events = { event in
            switch event.kind {
            case .encryptionPostponed(let reason):
                codes.change { $0.append((reason as? StoreError)?.code) }
                isPostponed.arrive()
            case .stage(.building) where isPostponed.count < 3: stages.change { $0 += 1 }
            default: break
            }
        }
        let store = try await fixture.open()
        let conversion = try #require(store.conversion)
        while isPostponed.count < 3 { await Task.yield() }
        guard case .waiting = conversion.state else {
            Issue.record("\(conversion.state)")
            return
        }
        #expect(stages.value == 0)
        #expect(codes.value.allSatisfy { $0 == .busy })
        try await first.insert("of the first store")
        await first.close()
        _ = try await conversion.value
        try await opening.check(store, isEncrypted: true, bodies: ["old", "of the first store"])
    }

    @Test("During the encryption of the store, a vacuum is refused because of it, and works afterwards")
    func vacuum() async throws {
        let (store, conversion, gate) = try await opening.openHeld()
        let error = try #require(await #expect(throws: StoreError.self) { try await store.vacuum() })
        #expect(error.code == .busy)
        #expect(error.advice.contains("`conversion`"))
        gate.arrive()
        _ = try await conversion.value
        try await store.vacuum()
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test("If reads prevent a long log from restarting, the copy ends, and a new one is made after the reads")
    func longLog() async throws {
        let (isPostponed, isTooLong, mayEnd, isReading) = (Gate(), Gate(), Gate(), Gate())
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = { event in
                guard case .encryptionPostponed(let error) = event.kind else { return }
                isPostponed.arrive()
                if "\(error)".contains("write-ahead log is longer") { isTooLong.arrive() }
            }
        }
        let read = Task {
            try await store.read { db in
                let count = try db.value(Int.self, "SELECT count(*) FROM big")
                isReading.arrive()
                mayEnd.block()
                return try db.value(Int.self, "SELECT count(*) FROM big") == count
            }
        }
        await isReading.wait()
        gate.arrive()
        await isPostponed.wait()
        try await store.write { db in
            // Writes 72 MB, which is more than the threshold of 64 MB.
            for _ in 0..<8_000 { try db.execute("INSERT INTO big(body) VALUES (zeroblob(9000))") }
        }
        await isTooLong.wait()
        #expect(try opening.folder.names.allSatisfy { !$0.contains("-upgrade-") })
        mayEnd.arrive()
        #expect(try await read.value)
        _ = try await conversion.value
        #expect(try await store.read { try $0.value(Int.self, "SELECT count(*) FROM big") } == 8_400)
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test("A last step that another process blocks is tried again with the same copy")
    func lastStepCannotBegin() async throws {
        let isPostponed = Gate()
        let copies = SharedValue<Set<String>>([])
        let folder = opening.folder
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = { event in
                switch event.kind {
                case .encryptionPostponed: isPostponed.arrive()
                default: break
                }
                let names = (try? folder.names) ?? []
                copies.change { $0.formUnion(names.filter { $0.contains("-upgrade-") }) }
            }
        }
        let holder = try TestProgram.built("CipherLockHolder").start(["folder", folder.url.path(percentEncoded: false)])
        try #require(try holder.line() == "ready")
        gate.arrive()
        await isPostponed.wait(until: 2)
        try await store.insert("meanwhile")
        _ = try holder.wait()
        _ = try await conversion.value
        #expect(copies.value.count == 1)
        try await opening.check(store, isEncrypted: true, bodies: ["old", "meanwhile"])
    }

    @Test("Calls succeed after a postponed switch even if only connections that stayed open can read the whole log")
    func logOfOpenConnections() async throws {
        let (isPostponed, mayGoOn) = (Gate(), Gate())
        let (store, conversion, gate) = try await opening.openHeld(
            after: "PRAGMA page_size = 512; CREATE TABLE t(id INTEGER PRIMARY KEY, a, b UNIQUE);"
        ) {
            $0.options.events = { event in
                guard case .encryptionPostponed = event.kind, isPostponed.count < 3 else { return }
                isPostponed.arrive()
                mayGoOn.block(until: isPostponed.count)
            }
        }
        let path = opening.fixture.path
        let folder = opening.folder.url.path(percentEncoded: false)
        let holder = try TestProgram.built("CipherLockHolder").start(["folder", folder])
        try #require(try holder.line() == "ready")
        gate.arrive()
        await isPostponed.wait()
        let others = try (0..<2).map { _ in try Connection(path: path, mode: .readWrite) }
        // Frames without a checksum, followed by versions of page 1.
        try others[0].executeScript(text: OpenEncryptionTests.unsealed)
        for number in 1...6 { try others[number % 2].execute(SQL(text: "PRAGMA application_id = \(number)")) }
        mayGoOn.arrive()
        await isPostponed.wait(until: 2)
        // The copy now follows the last commit, so a checkpoint writes the last version of page 1 into the file.
        _ = try others[0].value(Int.self, "PRAGMA wal_checkpoint(PASSIVE)")
        for other in others { other.close() }
        mayGoOn.arrive()
        await isPostponed.wait(until: 3)
        #expect(try Inspector(DatabasePaths(path)).surface() == .staleSidecar)
        try await store.insert("meanwhile")
        mayGoOn.arrive()
        _ = try holder.wait()
        _ = try await conversion.value
        try await opening.check(store, isEncrypted: true, bodies: ["old", "meanwhile"])
    }

    @Test("If another process prevents the return to WAL mode after an abandoned switch, the encryption waits for it")
    func returnToWriteAheadLog() async throws {
        let (isAtRest, isRead, isPostponed) = (Gate(), Gate(), Gate())
        let (store, conversion, gate) = try await opening.openHeld {
            $0.options.events = { event in
                switch event.kind {
                case .stage(.quiescing):
                    isAtRest.arrive()
                    isRead.block()
                case .encryptionPostponed: isPostponed.arrive()
                default: break
                }
            }
        }
        gate.arrive()
        await isAtRest.wait()
        // The database has left WAL mode, and the store has no connection to it.
        let reader = try TestProgram.built("CipherLockHolder").start(["sql", opening.fixture.path])
        try #require(try reader.line() == "ready")
        #expect(try reader.ask("BEGIN").hasPrefix("ok"))
        #expect(try reader.ask("SELECT count(*) FROM chat").hasPrefix("ok"))
        isRead.arrive()
        await isPostponed.wait()
        let mode = try await store.read { try $0.value(String.self, "PRAGMA journal_mode") }
        #expect(mode == "delete")
        _ = try reader.wait()
        _ = try await conversion.value
        try await opening.check(store, isEncrypted: true, bodies: ["old"])
    }

    @Test(
        "A file that another program put in place is not written to, and the store reports it",
        arguments: ["DELETE", "WAL"])
    func replaced(journalMode: String) async throws {
        let (store, conversion, gate) = try await opening.openHeld()
        let path = opening.fixture.path
        try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
        try LegacyFile.write(
            path, script: "PRAGMA journal_mode = \(journalMode); CREATE TABLE theirs(a); INSERT INTO theirs VALUES (1)")
        let theirs = try Data(contentsOf: opening.folder.url.appending(path: "app.db"))
        gate.arrive()
        let error = try await failure(StoreError.self) { try await conversion.value }
        #expect(error.code == .replaced, "\(error)")
        #expect(try Data(contentsOf: opening.folder.url.appending(path: "app.db")) == theirs)
        await store.close()
        #expect(try opening.folder.names.allSatisfy { !$0.contains("-upgrade-") && !$0.contains("-attempt") })
    }
}
