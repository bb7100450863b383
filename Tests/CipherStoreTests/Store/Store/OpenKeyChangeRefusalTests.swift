internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherPageSealing
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Key changes of an open store that do not finish: the store continues with the old key, and nothing is left.
@Suite(.timeLimit(.minutes(20)))
struct OpenKeyChangeRefusalTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private var newKey: ClosureKeyProvider { OpenKeyChangeTests.newKey }

    private func open(isEncrypted: Bool = true) async throws -> EncryptedStore {
        var fixture = StoreFixture(folder, isEncrypted: isEncrypted)
        fixture.options.busyTimeout = .milliseconds(100)
        let store = try await fixture.open()
        try await store.write { db in
            for number in 0..<600 {
                let body = String(repeating: "\(number) ", count: 900)
                try db.execute("INSERT INTO chat(uid, body) VALUES ('ana', \(body))")
            }
        }
        return store
    }

    /// Checks that the store reads, writes and is in WAL mode, with its old key, and that the folder contains nothing
    /// else.
    private func checkUnchanged(
        _ store: EncryptedStore, _ rows: Int = 600, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        #expect(try await store.bodies().count == rows, sourceLocation: sourceLocation)
        try await store.insert("after")
        let mode = try await store.read { try $0.value(String.self, "PRAGMA journal_mode") }
        #expect(mode == "wal", sourceLocation: sourceLocation)
        await store.close()
        #expect(try folder.names == ["app.db"], sourceLocation: sourceLocation)
        let again = try await StoreFixture(folder).open()
        #expect(again.report.outcome == .opened, sourceLocation: sourceLocation)
        #expect(try await again.bodies().count == rows + 1, sourceLocation: sourceLocation)
        await again.close()
    }

    // MARK: Keys

    @Test(
        "A provider that fails or returns two different keys, even after the copy is made, changes no byte",
        // Without a copy made in advance, the third request comes once the log is merged into the file.
        arguments: FileLayer.canSeal(CipherSettings()) ? [1, 2, 3] : [1, 2], [true, false])
    func provider(call: Int, fails: Bool) async throws {
        let store = try await open()
        try await store.checkpoint()
        await store.suspend()
        let before = try FolderDigest(folder.url)
        store.resume()
        let calls = Gate()
        let provider = TestKeys.provider {
            calls.arrive()
            guard calls.count == call else { return try TestKeys.raw(11) }
            if fails { throw CocoaError(.fileNoSuchFile) }
            return try TestKeys.raw(12)
        }
        let error = try await failure(StoreError.self) { try await store.changeKey(to: provider) }
        #expect(error.code == (fails ? .keyUnavailable : .keyChanged))
        #expect(calls.count == (fails ? call : max(2, call)))
        await store.suspend()
        #expect(try FolderDigest(folder.url) == before)
        store.resume()
        try await checkUnchanged(store)
    }

    @Test("The current key of the database is refused as the new one, in each of its forms")
    func sameKey() async throws {
        let store = try await open()
        let error = try await failure(StoreError.self) { try await store.changeKey(to: TestKeys.provider()) }
        #expect(error.code == .keyUnchanged)
        #expect(error.advice == "pass a different new key; nothing was changed")
        try await checkUnchanged(store)
    }

    @Test("The current passphrase is refused as the new one, although it would get another salt")
    func samePassphrase() async throws {
        let provider = TestKeys.provider { try TestKeys.passphrase() }
        let store = try await StoreFixture(folder).open(provider)
        #expect(try await code { try await store.changeKey(to: provider) } == .keyUnchanged)
        await store.close()
    }

    @Test("An unencrypted, in-memory or closed store is refused, and so is a call from the store's own closure")
    func misuse() async throws {
        let plain = try await StoreFixture(folder, name: "plain.db", isEncrypted: false).open()
        #expect(try await code { try await plain.changeKey(to: newKey) } == .unexpectedPlaintext)
        await plain.close()
        let memory = try await EncryptedStore.inMemory(StoreFixture(folder).configuration)
        #expect(try await code { try await memory.changeKey(to: newKey) } == .misuse)
        await memory.close()
        let store = try await StoreFixture(folder).open()
        let nested = try await store.read { [newKey] _ in
            #expect(throws: StoreError.self) { try store.changeKeyBlocking(to: newKey) }
        }
        #expect(nested?.code == .misuse)
        await store.close()
        #expect(try await code { try await store.changeKey(to: newKey) } == .closed)
    }

    // MARK: Other connections

    @Test("Another process that has the file open is named, and keeps its read")
    func otherProcess() async throws {
        let store = try await open()
        let other = try TestProgram.built("CipherLockHolder").start(["sql", store.path, "7"])
        try #require(try other.line() == "ready")
        _ = try other.ask("half SELECT body FROM chat")
        let error = try await failure(StoreError.self) { try await store.changeKey(to: newKey) }
        #expect(error.code == .busy)
        if LinuxCalls.areUsed { #expect(error.detail.contains("\(other.processID)")) }
        _ = try other.wait()
        try await checkUnchanged(store)
    }

    @Test(
        "Another process that opens the file for the last step makes that step fail, and the store continues",
        .enabled(if: LinuxCalls.areUsed))
    func otherProcessLate() async throws {
        let store = try await open()
        let other = Gate()
        let running = Started()
        let error = try await failure(StoreError.self) { [path = store.path] in
            try await store.changeKey(to: newKey) { progress in
                guard progress.stage == .quiescing, other.count == 0 else { return }
                other.arrive()
                do {
                    let started = try TestProgram.built("CipherLockHolder").start(["sql", path, "7"])
                    running.process = started
                    #expect(try started.line() == "ready")
                    #expect(try started.ask("SELECT count(*) FROM chat") == "ok 600")
                } catch {
                    Issue.record(error)
                }
            }
        }
        #expect(error.code == .busy)
        #expect(other.count == 1)
        _ = try running.process?.wait()
        try await checkUnchanged(store)
    }

    @Test("Another store on the file, in this process, is refused")
    func otherStore() async throws {
        let store = try await open()
        let second = try await StoreFixture(folder).open()
        #expect(try await code { try await store.changeKey(to: newKey) } == .busy)
        #expect(try await second.bodies().count == 600)
        await second.close()
        try await checkUnchanged(store)
    }

    @Test("A key change waits for an endless read only as long as for a lock, and then everything continues")
    func longRead() async throws {
        let store = try await open()
        let (isReading, ends) = (Gate(), Gate())
        let read = Task {
            try await store.read { db in
                // The first statement determines what the transaction sees.
                try db.proveReadable()
                isReading.arrive()
                ends.block()
                return try db.value(Int.self, "SELECT count(*) FROM chat")
            }
        }
        await isReading.wait()
        let error = try await failure(StoreError.self) { try await store.changeKey(to: newKey) }
        #expect(error.code == .busy)
        #expect(error.detail.contains("reads"))
        try await store.insert("while the read goes on")
        ends.arrive()
        #expect(try await read.value == 600)
        try await checkUnchanged(store, 601)
    }

    // MARK: Ending early

    @Test(
        "If the change is canceled at any stage, the store continues unchanged",
        .enabled(if: FileLayer.canSeal(CipherSettings())),
        arguments: [UpgradeStage.building, .quiescing, .proving, .swapping],
        OpenKeyChangeTests.copiesAhead ? [true, false] : [false])
    func cancelled(stage: UpgradeStage, isFirst: Bool) async throws {
        let store = try await open()
        let (arrived, isCancelled) = (Gate(), Gate())
        let change = Task {
            try await store.changeKey(to: newKey) { progress in
                // The copy is built while others write, and is finished while they wait. The first part of a small file
                // may be reported only once, at its end.
                guard progress.stage == stage, (progress.fraction <= 0.9) == isFirst || stage != .building else {
                    return
                }
                arrived.arrive()
                isCancelled.block()
            }
        }
        await arrived.wait()
        change.cancel()
        isCancelled.arrive()
        await #expect(throws: CancellationError.self) { try await change.value }
        try await checkUnchanged(store)
    }

    @Test(
        "If the blocking change is canceled at any stage, the store continues unchanged",
        .enabled(if: FileLayer.canSeal(CipherSettings())),
        arguments: [UpgradeStage.building, .quiescing, .proving, .swapping])
    func cancelledBlocking(stage: UpgradeStage) async throws {
        let store = try await open()
        let newKey = newKey
        let error = try await DetachedThread.run {
            let cancellation = UpgradeCancellation()
            return try storeError {
                try store.changeKeyBlocking(
                    to: newKey,
                    progress: { progress in
                        if progress.stage == stage { cancellation.cancel() }
                    }, cancellation: cancellation)
            }
        }
        #expect(error?.code == .cancelled)
        try await checkUnchanged(store)
    }

    @Test(
        "A changed page of a table prevents the change of the key",
        arguments: [UInt8(0), 0xa5, 0xff],
        [true, false])
    func damagedPage(byte: UInt8, isMeanwhile: Bool) async throws {
        let store = try await open()
        let page = try #require(
            try await store.write { db in
                try db.executeScript(text: "CREATE TABLE kept(a); INSERT INTO kept VALUES ('of use')")
                return try db.value(Int64.self, "SELECT rootpage FROM sqlite_master WHERE name = 'kept'")
            })
        try await store.checkpoint()
        let path = store.path
        @Sendable func overwrite() throws {
            let file = try DatabaseFile(path: path, access: .readWrite)
            defer { file.close() }
            let size = CipherSettings().pageSize
            try file.write([UInt8](repeating: byte, count: size), at: (page - 1) * Int64(size))
        }
        await store.close()
        if !isMeanwhile { try overwrite() }
        let (again, isWritten) = (try await StoreFixture(folder).open(), Gate())
        // Which error is thrown depends on when the page is read.
        _ = try await code {
            try await again.changeKey(to: newKey) { progress in
                guard isMeanwhile, progress.stage == .building, isWritten.count == 0 else { return }
                guard progress.bytes == progress.totalBytes || !OpenKeyChangeTests.copiesAhead else { return }
                isWritten.arrive()
                do { try overwrite() } catch { Issue.record(error) }
            }
        }
        await again.close()
        #expect(try folder.names == ["app.db"])
    }

    @Test(
        "Suspending or closing the store ends the change while pages are copied",
        // If nothing is copied ahead, the store closes after the change.
        .enabled(if: OpenKeyChangeTests.copiesAhead), arguments: [true, false])
    func suspended(closes: Bool) async throws {
        let store = try await open()
        let (arrived, goesOn) = (Gate(), Gate())
        let change = Task {
            try await store.changeKey(to: newKey) { _ in
                arrived.arrive()
                goesOn.block()
            }
        }
        await arrived.wait()
        let end = Task {
            if closes { await store.close() } else { await store.suspend(interruptingAfter: .zero) }
        }
        // A suspension waits until the file is closed; closing does not.
        if closes { await end.value }
        goesOn.arrive()
        let error = try await failure(StoreError.self) { try await change.value }
        #expect(error.code == (closes ? .closed : .suspended))
        await end.value
        #expect(try folder.names == ["app.db"])
        guard !closes else { return }
        store.resume()
        try await checkUnchanged(store)
    }
}
