internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Concurrent calls of a store, with a count of what was acknowledged.
@Suite(.timeLimit(.minutes(4)))
struct StoreInterplayTests {
    private let folder: TemporaryFolder
    private let backups: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        backups = try TemporaryFolder()
    }

    /// What was requested and what was answered.
    private final class Model: @unchecked Sendable {
        // These are read and written only under `lock`.
        private let lock = NSLock()
        private var begun: Set<Int> = []
        private var written: Set<Int> = []
        private var faults: [String] = []
        private var refused: [String] = []

        var acknowledged: Set<Int> { lock.withLock { written } }
        var problems: [String] { lock.withLock { faults } }

        func begin(_ number: Int) { lock.withLock { _ = begun.insert(number) } }
        func end(_ number: Int) { lock.withLock { _ = written.insert(number) } }
        /// Calls that were refused for a reason other than concurrent calls.
        var refusals: [String] { lock.withLock { refused } }

        func fault(_ text: String) { lock.withLock { faults.append(text) } }
        func refuse(_ text: String) { lock.withLock { refused.append(text) } }

        /// Records whether rows lack what was acknowledged before, or contain what nobody wrote.
        func compare(_ rows: [Int], _ before: Set<Int>, _ who: String) {
            let (found, asked) = (Set(rows), lock.withLock { begun })
            if found.count != rows.count { fault("\(who): duplicate rows") }
            if !before.isSubset(of: found) { fault("\(who): lost \(before.subtracting(found).sorted())") }
            if !found.isSubset(of: asked) { fault("\(who): invented \(found.subtracting(asked).sorted())") }
        }
    }

    private static let rows: @Sendable (Connection) throws -> [Int] = {
        try $0.values(Int.self, "SELECT CAST(body AS INTEGER) FROM chat ORDER BY rowid")
    }

    /// Runs one call of a task, chosen by a number.
    private func call(
        _ store: EncryptedStore, _ choice: UInt64, _ number: Int, _ model: Model
    ) async throws {
        switch choice % 16 {
        case 0..<7:
            model.begin(number)
            let write = Task {
                try await store.write { db in
                    try db.execute("INSERT INTO chat VALUES ('ana', \(String(number)))")
                }
            }
            if choice % 160 > 140 { write.cancel() }
            try await write.value
            model.end(number)
        case 7..<10:
            let before = model.acknowledged
            model.compare(try await store.read(Self.rows), before, "read")
        case 10:
            let before = model.acknowledged
            let target = backups.url.appending(path: "\(number).db")
            try await store.backup(to: target)
            let copy = try Connection(
                path: target.path(percentEncoded: false), mode: .readOnly, key: TestKeys.raw(),
                settings: CipherSettings())
            defer { copy.close() }
            model.compare(try Self.rows(copy), before, "backup")
        case 11: try await store.vacuum()
        case 12:
            await store.suspend(interruptingAfter: choice % 32 < 16 ? .milliseconds(1) : nil)
            store.resume()
        case 13:
            try await store.writeWithoutTransaction { db in
                try db.execute("PRAGMA foreign_keys = OFF")
                try db.execute("VACUUM")
            }
        case 14: try await store.checkpoint()
        default:
            for try await slice in store.integrityCheck() where !slice.isSound {
                model.fault("\(slice.part): \(slice.complaints)")
            }
        }
    }

    @Test(
        "Rows that eight tasks write during backups, vacuums, suspensions and checks are there afterwards",
        arguments: 0..<4)
    func interleavings(seed: Int) async throws {
        var fixture = StoreFixture(folder)
        fixture.options.busyTimeout = .milliseconds(200)
        let store = try await fixture.open()
        let model = Model()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask { [self] in
                    var random = SeededNumbers(seed: UInt64(seed * 8 + task))
                    for step in 0..<25 {
                        do {
                            try await call(store, random.next(), task * 1_000 + step, model)
                        } catch let error as StoreError where [.busy, .suspended].contains(error.code) {
                        } catch let error as DatabaseError where error.isBusy || error.isInterrupted {
                        } catch is CancellationError {
                        } catch {
                            model.refuse("\(error)")
                        }
                    }
                }
            }
        }
        await store.close()
        #expect(model.problems.isEmpty, "\(model.problems.prefix(5))")
        #expect(model.refusals.isEmpty, "\(model.refusals.prefix(5))")
        let names = try folder.names
        #expect(names == ["app.db"])
        let again = try await fixture.open()
        let rows = try await again.read(Self.rows)
        #expect(Set(rows) == model.acknowledged && rows.count == model.acknowledged.count)
        await again.close()
        #expect(try backups.names.allSatisfy { $0.hasSuffix(".db") && !$0.hasPrefix(".") })
    }

    // MARK: State of the file

    @Test(
        "A vacuum, a backup and a restore keep the header values",
        arguments: Engine.current.hasCompatibilityPragma ? [0, 32] : [0],
        ["UTF-8", "UTF-16le", "UTF-16be"])
    func headers(headerSize: Int, encoding: String) async throws {
        let settings = CipherSettings(plaintextHeaderSize: headerSize)
        let key: @Sendable () throws -> CipherKey = { try headerSize > 0 ? TestKeys.rawWithSalt() : TestKeys.raw() }
        let path = folder.path("a?b#c%20.db")
        let pragmas = ["encoding", "auto_vacuum", "user_version", "application_id", "page_size", "journal_mode"]
        func values(_ path: String) throws -> [String] {
            let connection = try Connection(path: path, mode: .readWrite, key: key(), settings: settings)
            defer { connection.close() }
            #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
            #expect(try connection.values(String.self, "SELECT body FROM chat ORDER BY rowid").last == "ö\u{301}ß𝄞")
            return try pragmas.map { "\($0) \(try connection.value(Value.self, SQL(text: "PRAGMA \($0)")) ?? .null)" }
        }
        do {
            let connection = try Connection(path: path, mode: .create, key: key(), settings: settings)
            defer { connection.close() }
            try connection.executeScript(
                text: """
                    PRAGMA encoding = '\(encoding)'; PRAGMA auto_vacuum = 1; PRAGMA application_id = 99;
                    CREATE TABLE chat(uid TEXT, body TEXT); PRAGMA user_version = 1;
                    CREATE TABLE pair(a TEXT, b TEXT, PRIMARY KEY(b, a)) WITHOUT ROWID;
                    INSERT INTO pair VALUES ('a', 'b');
                    """)
            for number in 0..<300 { try connection.execute("INSERT INTO chat VALUES ('ana', \("\(number) ö"))") }
            try connection.execute("INSERT INTO chat VALUES ('ana', \("ö\u{301}ß𝄞"))")
            try connection.execute("DELETE FROM chat WHERE rowid < 200")
        }
        var configuration = Configuration.declaring([
            "chat": ["uid": "TEXT", "body": "TEXT"], "pair": ["a": "TEXT", "b": "TEXT"],
        ])
        configuration.databaseName = "a?b#c%20.db"
        configuration.encryption.format = settings
        configuration.schema = .steps(
            MigrationSteps(baseline: .sql(["CREATE TABLE chat(uid TEXT, body TEXT)"]), updates: []))
        configuration.version = 1
        let store = try await EncryptedStore.open(
            configuration, directory: folder.url, keyProvider: TestKeys.provider(key))
        try await store.vacuum()
        try await store.vacuum()
        let target = backups.url.appending(path: "x?y#z%20.db")
        try await store.backup(to: target)
        await store.close()
        let before = try values(path)
        #expect(before[0].contains(encoding) && before[1].contains("1") && before[3].contains("99"), "\(before)")
        #expect(try values(target.path(percentEncoded: false)).prefix(5) == before.prefix(5))
        try await EncryptedStore.restore(
            configuration, directory: folder.url, from: target, keyProvider: TestKeys.provider(key))
        #expect(try values(path) == before)
        #expect(try folder.names == ["a?b#c%20.db"])
    }

    @Test("A database without a table is backed up and restored")
    func noTables() async throws {
        let path = folder.path("app.db")
        let connection = try Connection(path: path, mode: .create, key: TestKeys.raw(), settings: CipherSettings())
        try connection.execute("PRAGMA user_version = 5")
        connection.close()
        let target = backups.url.appending(path: "b.db")
        try await DatabaseConverter.backup(of: URL(filePath: path), to: target, keyProvider: TestKeys.provider())
        try await DatabaseConverter.restore(URL(filePath: path), from: target, keyProvider: TestKeys.provider())
        let again = try Connection(path: path, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { again.close() }
        #expect(try again.value(Int.self, "PRAGMA user_version") == 5)
    }
}

/// Numbers that are the same in each run.
private struct SeededNumbers {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed &+ 0x9e37_79b9_7f4a_7c15
    }

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 24
    }
}
