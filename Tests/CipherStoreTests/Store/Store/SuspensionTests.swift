internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite("Suspending a store", .timeLimit(.minutes(20)))
struct SuspensionTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ name: String = "app.db", readers: Int = 4) async throws -> EncryptedStore {
        var fixture = StoreFixture(folder)
        fixture.configuration.databaseName = name
        fixture.options.maximumReaders = readers
        return try await fixture.open()
    }

    /// The code of what `body` throws.
    private func code(_ body: () async throws -> some Any) async throws -> StoreError.Code {
        try await failure(StoreError.self, body).code
    }

    // MARK: No file, no lock

    #if os(Linux)
        /// The files of the folder that this process has open, those that have lost their names too.
        ///
        /// By the kernel's names, for the number of a file that is gone may be that of another test's file.
        private func openFiles() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { descriptor in
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
                return target?.hasPrefix(folder.path("")) == true ? target : nil
            }
        }

        @Test(
            "A suspended store has no descriptor of the database, its log and its index, and another process gets every lock"
        )
        func descriptors() async throws {
            let store = try await open()
            let observation = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }
            var iterator = observation.makeAsyncIterator()
            #expect(try await iterator.next() == 0)
            try await withThrowingTaskGroup { group in
                let together = Gate()
                for _ in 0..<4 {
                    group.addTask {
                        try await store.read { _ in
                            together.arrive()
                            together.block(until: 4)
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await store.insert("one")
            try await store.checkpoint()
            #expect(try Set(openFiles()) == Set(["app.db", "app.db-wal", "app.db-shm"].map(folder.path)))
            await store.suspend()
            #expect(try openFiles() == [])
            #expect(try folder.names == ["app.db"])
            let other = try TestProgram.built("CipherLockHolder").start(["sql", store.path, "7"])
            #expect(try other.line() == "ready")
            #expect(try other.ask("PRAGMA locking_mode = EXCLUSIVE").hasPrefix("ok"))
            #expect(try other.ask("BEGIN EXCLUSIVE").hasPrefix("ok"))
            #expect(try other.ask("INSERT INTO chat VALUES ('ben', 'meanwhile')").hasPrefix("ok"))
            #expect(try other.ask("COMMIT").hasPrefix("ok"))
            _ = try other.wait()
            store.resume()
            #expect(try await iterator.next() == 2)
            #expect(try await store.bodies() == ["one", "meanwhile"])
            await store.close()
        }

        @Test("A suspension waits for a backup that has begun, and no file is open afterwards")
        func backup() async throws {
            let store = try await open()
            try await store.write { db in
                for number in 0..<4_000 {
                    try db.execute("INSERT INTO chat VALUES ('ana', \(String(repeating: "\(number)", count: 300)))")
                }
            }
            try await store.checkpoint()
            let (began, mayEnd) = (Gate(), Gate())
            let target = folder.url.appending(path: "backup")
            let backup = Task {
                try await store.backup(to: target) { progress in
                    guard progress.stage == .proving else { return }
                    began.arrive()
                    mayEnd.block()
                }
            }
            await began.wait()
            let open = Task {
                await store.suspend()
                return try openFiles()
            }
            while (try? await store.read { _ in }) != nil {}
            mayEnd.arrive()
            #expect(try await open.value == [])
            #expect(try await backup.value.outcome == .backedUp)
            store.resume()
            #expect(try await store.bodies().count == 4_000)
            await store.close()
        }
    #endif

    @Test("A limit ends a backup with suspended, and nothing is left of it")
    func backupLimit() async throws {
        let store = try await open(readers: 1)
        try await store.insert("one")
        let (began, running, mayEnd) = (Gate(), Gate(), Gate())
        let target = folder.url.appending(path: "backup")
        let backup = Task {
            try await store.backup(to: target) { progress in
                guard progress.stage == .building else { return }
                began.arrive()
                mayEnd.block()
            }
        }
        await began.wait()
        let read = Task {
            try await store.read { db in
                running.arrive()
                try db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
            }
        }
        await running.wait()
        let suspended = Task { await store.suspend(interruptingAfter: .zero) }
        // Backups are ended before reads.
        #expect(try await code { try await read.value } == .suspended)
        mayEnd.arrive()
        #expect(try await code { try await backup.value } == .suspended)
        await suspended.value
        #expect(try folder.names == ["app.db"])
        store.resume()
        try await store.backup(to: target)
        await store.close()
    }

    @Test("What a backup tells its progress to cannot wait for the store's suspension")
    func backupProgress() async throws {
        let store = try await open()
        let refused = Gate()
        try await store.backup(to: folder.url.appending(path: "backup")) { progress in
            guard progress.stage == .proving else { return }
            #expect(throws: StoreError.self) { try store.suspendBlocking() }
            refused.arrive()
        }
        #expect(refused.count > 0)
        try await store.insert("usable")
        await store.close()
    }

    // MARK: What is asked meanwhile

    @Test("A call of a suspended store fails with suspended, and a resumed one serves again")
    func refused() async throws {
        let store = try await open()
        try await store.insert("before")
        await store.suspend()
        await store.suspend()
        #expect(try await code { try await store.insert("never") } == .suspended)
        #expect(try await code { try await store.bodies() } == .suspended)
        #expect(try await code { try await store.checkpoint() } == .suspended)
        #expect(try await code { try await store.withConnectionsClosed { _, _ in } } == .suspended)
        let error = try await failure(StoreError.self) { try await store.bodies() }
        #expect(error.path == store.path && error.advice.contains("resume()"))
        store.resume()
        store.resume()
        try await store.insert("after")
        #expect(try await store.bodies() == ["before", "after"])
    }

    @Test("What was asked before a suspension is done first")
    func accepted() async throws {
        let store = try await open(readers: 1)
        let (running, mayEnd) = (Gate(), Gate())
        let write = Task {
            try await store.write { db in
                running.arrive()
                mayEnd.block()
                try db.execute("INSERT INTO chat VALUES ('ana', 'one')")
            }
        }
        await running.wait()
        let submitted = Gate()
        let waiting = Task {
            submitted.arrive()
            try await store.insert("two")
        }
        await submitted.wait()
        // The second is in the queue as soon as another one of the same task would be.
        let suspended = Task {
            await store.suspend()
            return try await code { try await store.bodies() }
        }
        mayEnd.arrive()
        try await write.value
        #expect(try await suspended.value == .suspended)
        store.resume()
        let wasInTime = (try? await waiting.value) != nil
        #expect(try await store.bodies() == (wasInTime ? ["one", "two"] : ["one"]))
    }

    @Test("A limit ends a statement that runs and refuses what waits; the write is undone", arguments: [true, false])
    func limit(isWrite: Bool) async throws {
        let store = try await open(readers: 1)
        let running = Gate()
        let body: @Sendable (Connection) throws -> Void = { db in
            if isWrite { try db.execute("INSERT INTO chat VALUES ('ana', 'undone')") }
            running.arrive()
            try db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
        }
        let work = Task { isWrite ? try await store.write(body) : try await store.read(body) }
        await running.wait()
        await store.suspend(interruptingAfter: .zero)
        #expect(try await code { try await work.value } == .suspended)
        store.resume()
        #expect(try await store.bodies().isEmpty)
        try await store.insert("usable")
    }

    @Test("A limit that passes after the store was resumed ends nothing")
    func lateLimit() throws {
        let fixture = StoreFixture(folder, isEncrypted: false)
        try fixture.writeLegacy()
        let connections = StoreConnections(
            path: fixture.path, fileKey: nil, extensions: SQLExtensions(), busyTimeout: .zero)
        let queue = ConnectionQueue("test", path: fixture.path, capacity: 1, identity: StoreIdentity()) {
            try connections.writer()
        }
        let (running, mayEnd, done) = (Gate(), Gate(), Gate())
        let job = ConnectionJob(.write, of: StoreIdentity()) { db in
            running.arrive()
            mayEnd.block()
            try db.execute("INSERT INTO chat VALUES ('ana', 'one')")
        } completion: { _ in
            done.arrive()
        }
        queue.submit(job)
        running.block()
        let suspension = queue.suspend()
        queue.resume()
        queue.interrupt(suspension)
        mayEnd.arrive()
        done.block()
        #expect(try queue.runBlocking(.read) { try $0.value(Int.self, "SELECT count(*) FROM chat") } == 2)
        queue.close {}
    }

    @Test("Closing a suspended store works, and resuming a closed one changes nothing")
    func closed() async throws {
        let store = try await open()
        await store.suspend()
        await store.close()
        store.resume()
        await store.suspend()
        #expect(try await code { try await store.bodies() } == .closed)
        let again = try await open()
        #expect(try await again.bodies().isEmpty)
    }

    // MARK: In closures

    @Test("Suspending a store, and closing its connections, is refused inside of its own closure")
    func nested() async throws {
        let (store, other) = (try await open(), try await open("other.db"))
        let calls: [@Sendable () throws -> Void] = [
            { try store.suspendBlocking() }, { try store.withConnectionsClosedBlocking { _, _ in } },
        ]
        for call in calls {
            #expect(try await code { try await store.write { _ in try call() } } == .misuse)
            #expect(try await code { try await store.read { _ in try call() } } == .misuse)
            #expect(
                try await code { try await store.read { _ in try other.writeBlocking { _ in try call() } } } == .misuse)
        }
        try await store.insert("usable")
    }

    @Test("A closure may suspend another store, and resume it")
    func otherStore() async throws {
        let (store, other) = (try await open(), try await open("other.db"))
        try await store.write { _ in
            try other.suspendBlocking()
            #expect(throws: StoreError.self) { try other.readBlocking { _ in } }
            other.resume()
            try other.writeBlocking { try $0.execute("INSERT INTO chat VALUES ('ana', 'one')") }
        }
        #expect(try await other.bodies() == ["one"])
    }

    /// What a closure of one store does with another, whose closure calls back.
    static let waits: [@Sendable (EncryptedStore) throws -> Void] = [
        { try $0.suspendBlocking() }, { try $0.closeBlocking() },
        { try $0.withConnectionsClosedBlocking { _, _ in } },
    ]

    @Test("Of closures that wait for each other's stores to end one is refused", arguments: 0..<3)
    func circle(number: Int) async throws {
        let (store, other) = (try await open(), try await open("other.db"))
        let running = Gate()
        let ends = Task {
            try await store.write { _ in
                running.arrive()
                running.block(until: 2)
                try Self.waits[number](other)
            }
        }
        let calls = Task {
            try await other.read { _ in
                running.arrive()
                running.block(until: 2)
                try store.writeBlocking { _ in }
            }
        }
        let errors = [await ends.result, await calls.result].compactMap { result -> StoreError.Code? in
            if case .failure(let error) = result { (error as? StoreError)?.code } else { nil }
        }
        #expect(errors == [.misuse])
        try await store.insert("usable")
    }

    // MARK: Alone with the file

    @Test("Nothing is open while a body has the file alone, and what is asked meanwhile waits")
    func alone() async throws {
        let store = try await open()
        try await store.insert("one")
        let (running, mayEnd, asked) = (Gate(), Gate(), Gate())
        let names = Task { [folder] in
            try await store.withConnectionsClosed { _, _ in
                running.arrive()
                mayEnd.block()
                return try folder.names
            }
        }
        await running.wait()
        let work = (0..<4).map { number in
            Task {
                asked.arrive()
                if number.isMultiple(of: 2) { try await store.insert("\(number)") }
                return try await store.bodies().count
            }
        }
        await asked.wait(until: 4)
        mayEnd.arrive()
        #expect(try await names.value == ["app.db"])
        for task in work { #expect(try await task.value >= 1) }
        #expect(try await store.bodies().count == 3)
    }

    @Test("A file that a body puts in the place is what the store and its observers have afterwards")
    func exchanged() async throws {
        let store = try await open()
        try await store.insert("old")
        let next = try await open("next.db")
        try await next.insert("new")
        await next.close()
        var iterator = store.observe { try $0.values(String.self, "SELECT body FROM chat") }.makeAsyncIterator()
        #expect(try await iterator.next() == ["old"])
        let unlocked = try FileUnlocking(
            DatabasePaths(folder.path("next.db")), provider: TestKeys.provider(), formats: [CipherSettings()]
        ).run(Inspector(path: folder.path("next.db")), hasPlaintextHeader: false) { _, file in file.fileKey }.result
        try await store.withConnectionsClosed { [folder] key, _ in
            try FileManager.default.removeItem(atPath: folder.path("app.db"))
            try FileManager.default.moveItem(atPath: folder.path("next.db"), toPath: folder.path("app.db"))
            key = unlocked
        }
        #expect(try await iterator.next() == ["new"])
        try await store.insert("more")
        #expect(try await iterator.next() == ["new", "more"])
    }

    @Test("Cancelling what waits for the file alone lets the store go on")
    func cancelledWait() async throws {
        let store = try await open()
        let (running, mayEnd) = (Gate(), Gate())
        let read = Task {
            try await store.read { _ in
                running.arrive()
                mayEnd.block()
            }
        }
        await running.wait()
        let alone = Task { try await store.withConnectionsClosed { _, _ in } }
        alone.cancel()
        await #expect(throws: CancellationError.self) { try await alone.value }
        #expect(try await store.bodies().isEmpty)
        try await store.insert("usable")
        mayEnd.arrive()
        try await read.value
    }

    // MARK: Another file

    /// What happens to the file while the store sleeps, and what the next call says.
    enum Change: CaseIterable {
        case removed, replaced, otherContentInSameFile, decrypted, rekeyed

        var code: StoreError.Code {
            switch self {
            case .removed: .missingFile
            case .replaced, .decrypted: .replaced
            case .otherContentInSameFile, .rekeyed: .keyDoesNotFit
            }
        }
    }

    @Test(
        "A file that is another one after the sleep is refused with the reason, and stays as it is",
        arguments: Change.allCases)
    func changed(change: Change) async throws {
        let store = try await open()
        try await store.insert("ours")
        await store.suspend()
        switch change {
        case .removed: try FileManager.default.removeItem(atPath: store.path)
        case .replaced:
            try FileManager.default.copyItem(atPath: store.path, toPath: folder.path("copy"))
            try FileManager.default.moveItem(atPath: store.path, toPath: folder.path("kept"))
            try FileManager.default.moveItem(atPath: folder.path("copy"), toPath: store.path)
        case .otherContentInSameFile:
            let random = Data((0..<8_192).map { _ in UInt8.random(in: 0...255) })
            let file = try FileHandle(forWritingTo: URL(filePath: store.path))
            try file.write(contentsOf: random)
            try file.close()
        case .decrypted:
            try LegacyFile.write(folder.path("plain"), script: "CREATE TABLE chat(uid TEXT, body TEXT)")
            let file = try FileHandle(forWritingTo: URL(filePath: store.path))
            try file.truncate(atOffset: 0)
            try file.write(contentsOf: Data(contentsOf: URL(filePath: folder.path("plain"))))
            try file.close()
        case .rekeyed:
            let other = try StoreFixture(folder).connection(isEncrypted: true)
            try other.execute(SQL(text: "PRAGMA rekey = \"\(TestKeys.text(9))\""))
            other.close()
        }
        let before = try? Data(contentsOf: URL(filePath: store.path))
        store.resume()
        for _ in 0..<2 {
            #expect(try await code { try await store.bodies() } == change.code)
            #expect(try await code { try await store.insert("never") } == change.code)
        }
        await store.close()
        #expect((try? Data(contentsOf: URL(filePath: store.path))) == before)
        #expect(try !folder.names.contains("app.db-wal"))
    }

    @Test("An observation of a file that is another one after the sleep ends with the reason")
    func changedUnderObserver() async throws {
        let store = try await open()
        var iterator = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        await store.suspend()
        try FileManager.default.removeItem(atPath: store.path)
        store.resume()
        #expect(try await code { try await iterator.next() } == .missingFile)
    }

    // MARK: Observing

    @Test("An observation goes on after a sleep, also one that begins in it, and hears of other processes again")
    func observing() async throws {
        let store = try await open()
        let observation = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }
        var iterator = observation.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        await store.suspend()
        let (asked, late) = (Gate(), observation)
        let waiting = Task {
            var iterator = late.makeAsyncIterator()
            asked.arrive()
            return try await iterator.next()
        }
        await asked.wait()
        let other = try TestProgram.built("CipherLockHolder").start(["sql", store.path, "7"])
        #expect(try other.line() == "ready")
        #expect(try other.ask("INSERT INTO chat VALUES ('ben', 'meanwhile')").hasPrefix("ok"))
        store.resume()
        #expect(try await waiting.value == 1)
        #expect(try await iterator.next() == 1)
        #expect(try other.ask("INSERT INTO chat VALUES ('ben', 'afterwards')").hasPrefix("ok"))
        #expect(try await iterator.next() == 2)
        _ = try other.wait()
    }

    @Test("Changes of tables are told after a sleep, also to who asked in it")
    func tables() async throws {
        let store = try await open()
        await store.suspend()
        let asked = Gate()
        let told = Task {
            var iterator = store.changes(in: ["chat"]).makeAsyncIterator()
            asked.arrive()
            return try await iterator.next() != nil
        }
        await asked.wait()
        store.resume()
        try await store.insert("one")
        #expect(try await told.value)
    }

    // MARK: Often

    @Test("A thousand sleeps beside eight tasks that write lose no write that was acknowledged")
    func often() async throws {
        let store = try await open()
        let writing = (0..<8).map { task in
            Task {
                var acknowledged: [String] = []
                while !Task.isCancelled {
                    let body = "\(task)-\(acknowledged.count)"
                    do {
                        try await store.insert(body)
                        acknowledged.append(body)
                    } catch let error as StoreError where error.code == .suspended {
                        await Task.yield()
                    } catch is CancellationError {}
                }
                return acknowledged
            }
        }
        for number in 0..<1_000 {
            await store.suspend(interruptingAfter: number.isMultiple(of: 3) ? .zero : nil)
            store.resume()
        }
        for task in writing { task.cancel() }
        var acknowledged: Set<String> = []
        for task in writing { acknowledged.formUnion(try await task.value) }
        let stored = try await store.bodies()
        // What failed is not there either, or its next try would be there twice.
        #expect(Set(stored) == acknowledged)
        #expect(stored.count == acknowledged.count)
        await store.close()
        #expect(try folder.names == ["app.db"])
    }

    @Test("Of a thousand commits and a hundred sleeps eight observers miss none at the end, and see none torn")
    func observedOften() async throws {
        let store = try await open()
        try await store.write { db in
            try db.executeScript(
                "CREATE TABLE account(id INTEGER PRIMARY KEY, amount); INSERT INTO account VALUES (1, 1000), (2, 0)")
        }
        let tasks = (0..<8).map { _ in
            Task {
                var sums: Set<Int> = []
                for try await amounts in store.observe({
                    try $0.values(Int.self, "SELECT amount FROM account ORDER BY id")
                }) {
                    sums.insert(amounts[0] + amounts[1])
                    if amounts == [0, 1000] { break }
                }
                return sums
            }
        }
        for number in 0..<1_000 {
            try await store.write { db in
                try db.execute("UPDATE account SET amount = amount - 1 WHERE id = 1")
                try db.execute("UPDATE account SET amount = amount + 1 WHERE id = 2")
            }
            guard number % 10 == 9 else { continue }
            await store.suspend(interruptingAfter: number % 20 == 9 ? .zero : nil)
            store.resume()
        }
        for task in tasks { #expect(try await task.value == [1000]) }
    }
}
