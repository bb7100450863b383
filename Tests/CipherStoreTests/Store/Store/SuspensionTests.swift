internal import CipherDatabaseConversion
internal import CipherErrors
import CipherPlatform
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite("Suspending a store", .timeLimit(.minutes(20)))
struct SuspensionTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ name: String = "app.db", readers: Int = 4) async throws -> EncryptedStore {
        var fixture = StoreFixture(folder, name: name)
        fixture.options.maximumReaders = readers
        return try await fixture.open()
    }

    // MARK: No file, no lock

    #if os(Linux)
        /// The files of the folder that this process has open, including those that have lost their names.
        ///
        /// The kernel's names identify the files, because the number of a deleted file may now belong to another test's
        /// file.
        private func openFiles() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { descriptor in
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
                return target?.hasPrefix(folder.path("")) == true ? target : nil
            }
        }

        @Test("A suspended store has no open descriptor of its files, and another process gets every lock")
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

        @Test("A suspension waits for a running backup, and afterwards no file is open")
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

    @Test("A time limit ends a backup with the error suspended, and nothing is left of it")
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
        // Backups are interrupted before reads.
        #expect(try await code { try await read.value } == .suspended)
        mayEnd.arrive()
        #expect(try await code { try await backup.value } == .suspended)
        await suspended.value
        #expect(try folder.names == ["app.db"])
        store.resume()
        try await store.backup(to: target)
        await store.close()
    }

    @Test("A backup's progress handler cannot wait for the store's suspension")
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

    // MARK: Calls meanwhile

    @Test("A call to a suspended store fails with the error suspended, and a resumed store works again")
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

    @Test("Calls made before a suspension are completed first")
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
        // The second call is in the queue as soon as another call of the same task would be.
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

    @Test(
        "A time limit ends a running statement, refuses waiting calls and rolls the write back",
        arguments: [true, false])
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

    @Test("A time limit that passes after the store was resumed ends nothing")
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

    @Test("A suspended store can be closed, and resuming a closed store changes nothing")
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

    @Test("Suspending a store or closing its connections is refused inside its own closure")
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

    @Test("A closure can suspend another store and resume it")
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

    /// What a closure of one store does with another store, whose closure calls back.
    static let waits: [@Sendable (EncryptedStore) throws -> Void] = [
        { try $0.suspendBlocking() }, { try $0.closeBlocking() },
        { try $0.withConnectionsClosedBlocking { _, _ in } },
    ]

    @Test("If closures wait for each other's stores to end, one call is refused", arguments: 0..<3)
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
}
