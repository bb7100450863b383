internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(20)))
struct StoreEndTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Counts until it is interrupted.
    private static let endless: SQL =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    @Test("Canceling interrupts a running read, and leaves its reader to the next call")
    func runningRead() async throws {
        var fixture = StoreFixture(folder)
        fixture.options.maximumReaders = 1
        let store = try await fixture.open()
        let running = Gate()
        let read = Task {
            try await store.read { db in
                running.arrive()
                try db.execute(Self.endless)
            }
        }
        await running.wait()
        read.cancel()
        await #expect(throws: CancellationError.self) { try await read.value }
        #expect(try await store.bodies().isEmpty)
    }

    @Test("Canceling rolls back a running write, even if its closure ignores the interruption")
    func runningWrite() async throws {
        let store = try await StoreFixture(folder).open()
        let running = Gate()
        let write = Task {
            try await store.write { db in
                try db.execute("INSERT INTO chat VALUES ('ana', 'one')")
                running.arrive()
                try? db.execute(Self.endless)
                try? db.execute("INSERT INTO chat VALUES ('ana', 'two')")
            }
        }
        await running.wait()
        write.cancel()
        await #expect(throws: CancellationError.self) { try await write.value }
        #expect(try await store.bodies().isEmpty)
        try await store.insert("usable")
    }

    @Test("Canceling ends a statement that starts after the cancellation")
    func betweenStatements() async throws {
        let store = try await StoreFixture(folder).open()
        let (running, cancelled) = (Gate(), Gate())
        let read = Task {
            try await store.read { db in
                running.arrive()
                cancelled.block()
                try db.execute(Self.endless)
            }
        }
        await running.wait()
        read.cancel()
        cancelled.arrive()
        await #expect(throws: CancellationError.self) { try await read.value }
    }

    @Test(
        "Canceling is visible to a closure that checks for it",
        arguments: [true, false])
    func checkedCancellation(isWrite: Bool) async throws {
        let store = try await StoreFixture(folder).open()
        let (running, cancelled, noticed) = (Gate(), Gate(), Gate())
        let body: @Sendable (Connection) throws -> Void = { db in
            try db.checkCancellation()
            running.arrive()
            cancelled.block()
            do {
                try db.checkCancellation()
            } catch is CancellationError {
                noticed.arrive()
            }
        }
        let work = Task { isWrite ? try await store.write(body) : try await store.read(body) }
        await running.wait()
        work.cancel()
        cancelled.arrive()
        await #expect(throws: CancellationError.self) { try await work.value }
        #expect(noticed.count == 1)
    }

    @Test(
        "Canceling removes a waiting read or write from its queue",
        arguments: [true, false])
    func waiting(isWrite: Bool) async throws {
        var fixture = StoreFixture(folder)
        fixture.options.maximumReaders = 1
        let store = try await fixture.open()
        let (running, mayEnd) = (Gate(), Gate())
        let hold: @Sendable (Connection) -> Void = { _ in
            running.arrive()
            mayEnd.block()
        }
        let first = Task { isWrite ? try await store.write(hold) : try await store.read(hold) }
        await running.wait()
        let waiting = Task {
            let never: @Sendable (Connection) -> Void = { _ in Issue.record("it was cancelled") }
            isWrite ? try await store.write(never) : try await store.read(never)
        }
        waiting.cancel()
        // The first call has not ended: the canceled call left the queue without waiting for its turn.
        await #expect(throws: CancellationError.self) { try await waiting.value }
        mayEnd.arrive()
        try await first.value
    }

    @Test(
        "Canceling a task beforehand makes its read or write fail",
        arguments: [true, false])
    func cancelledBefore(isWrite: Bool) async throws {
        let store = try await StoreFixture(folder).open()
        for _ in 0..<200 {
            let never: @Sendable (Connection) -> Void = { _ in Issue.record("it was cancelled") }
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                isWrite ? try await store.write(never) : try await store.read(never)
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test("Canceling never interrupts the next user of a connection")
    func cancellationStorm() async throws {
        var fixture = StoreFixture(folder)
        fixture.options.maximumReaders = 2
        let store = try await fixture.open()
        try await withThrowingTaskGroup { group in
            for number in 0..<400 {
                let task = Task {
                    try await store.read { try $0.value(Int.self, "SELECT count(*) FROM chat, sqlite_master") }
                }
                if number.isMultiple(of: 2) {
                    group.addTask { task.cancel() }
                } else {
                    group.addTask {
                        let count = try await task.value
                        #expect(count == 0)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("Waiting jobs are served in the order of their calls")
    func order() throws {
        let fixture = StoreFixture(folder, isEncrypted: false)
        try fixture.writeLegacy()
        let connections = StoreConnections(
            path: fixture.path, fileKey: nil, extensions: SQLExtensions(), busyTimeout: .zero)
        let queue = ConnectionQueue("test", path: fixture.path, capacity: 1, identity: StoreIdentity()) {
            try connections.writer()
        }
        let (running, mayEnd, done) = (Gate(), Gate(), Gate())
        func submit(_ body: @escaping @Sendable (Connection) throws -> Void) {
            queue.submit(ConnectionJob(.write, of: StoreIdentity(), body) { _ in done.arrive() })
        }
        submit { _ in
            running.arrive()
            mayEnd.block()
        }
        running.block()
        for number in 0..<20 {
            submit { try $0.execute("INSERT INTO chat(body) VALUES (\(String(number)))") }
        }
        mayEnd.arrive()
        done.block(until: 21)
        let order = try queue.runBlocking(.read) { try $0.values(String.self, "SELECT body FROM chat ORDER BY rowid") }
        #expect(order == ["old"] + (0..<20).map { String($0) })
        queue.close {}
    }

    @Test(
        "Canceling ends a read or write that waits for another connection's lock", arguments: [true, false])
    func waitingForLock(isWrite: Bool) async throws {
        let fixture = StoreFixture(folder, isEncrypted: false)
        try fixture.writeLegacy()
        let connections = StoreConnections(
            path: fixture.path, fileKey: nil, extensions: SQLExtensions(), busyTimeout: .seconds(3_600))
        // Unchecked, but safe: the test waits for the locking thread before it unlocks.
        nonisolated(unsafe) let holder = try fixture.connection(isEncrypted: false)
        let opened = Gate()
        let queue = ConnectionQueue("test", path: fixture.path, capacity: 1, identity: StoreIdentity()) {
            // Uses a rollback journal, with which readers also wait.
            let connection = try connections.reader()
            try connection.execute("PRAGMA query_only = OFF")
            try holder.execute("BEGIN EXCLUSIVE")
            opened.arrive()
            return connection
        }
        let job = Task {
            try await queue.run(isWrite ? .write : .read) { try $0.value(Int.self, "SELECT count(*) FROM chat") }
        }
        await opened.wait()
        job.cancel()
        await #expect(throws: CancellationError.self) { try await job.value }
        try holder.execute("ROLLBACK")
        #expect(try await queue.run(.write) { try $0.value(Int.self, "SELECT count(*) FROM chat") } == 1)
        queue.close {}
    }

    // MARK: Closing

    @Test("Closing lets running work finish, refuses waiting and later calls, and removes the log")
    func closing() async throws {
        var fixture = StoreFixture(folder)
        fixture.options.maximumReaders = 1
        let store = try await fixture.open()
        let (running, mayEnd) = (Gate(), Gate())
        let write = Task {
            try await store.write { db in
                try db.execute("INSERT INTO chat VALUES ('ana', 'one')")
                running.arrive()
                mayEnd.block()
            }
        }
        await running.wait()
        let waiting = Task { try await store.insert("never") }
        async let closed: Void = store.close()
        let refused = try await failure(StoreError.self) { try await waiting.value }
        #expect(refused.code == .closed)
        mayEnd.arrive()
        try await write.value
        await closed
        await store.close()
        #expect(try await failure(StoreError.self) { try await store.bodies() }.code == .closed)
        #expect(try folder.names == ["app.db"])
        #expect(try await fixture.open().bodies() == ["one"])
    }

    @Test("The last of several open connections checkpoints the log into the file, whichever connection it is")
    func lastConnection() async throws {
        var fixture = StoreFixture(folder)
        fixture.options.maximumReaders = 4
        for _ in 0..<200 {
            let store = try await fixture.open()
            try await store.insert("row")
            // The writer opens no connection before the next write.
            await store.suspend()
            store.resume()
            let reading = Gate()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        try await store.read { db in
                            reading.arrive()
                            reading.block(until: 4)
                            _ = try db.value(Int.self, "SELECT count(*) FROM chat")
                        }
                    }
                }
                try await group.waitForAll()
            }
            await store.close()
            let names = try folder.names
            guard names == ["app.db"] else {
                Issue.record("files left: \(names)")
                break
            }
        }
    }
}
