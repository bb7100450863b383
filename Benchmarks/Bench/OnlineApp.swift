import CipherStore
import Foundation

/// An app that works with the chat database in a separate process: 200 writes per second and four readers.
///
/// The database may be encrypted meanwhile.
///
/// A reader reads the latest 50 messages of one user and then waits for 5 ms. A writer adds a message every 5 ms, or as
/// soon as possible if it is late. In the modes ``Mode/alone`` and ``Mode/withoutPause``, no thread reads, and in the
/// second one, three threads write without a pause.
struct OnlineApp {
    enum Mode: String {
        /// The database stays plaintext.
        case plaintext
        /// The database is encrypted while the app is running.
        case whileOpen
        /// The database is encrypted before the store opens, and the app does nothing else.
        case beforeOpening
        /// The database is encrypted in an open store that the app does not use.
        case alone
        /// The database is encrypted while three threads write without a pause.
        case withoutPause

        fileprivate var loads: [Load.Kind] {
            switch self {
            case .plaintext, .whileOpen: (0..<OnlineApp.readers).map(Load.Kind.reading) + [.writing]
            case .beforeOpening, .alone: []
            case .withoutPause: (0..<3).map { _ in .writingWithoutPause }
            }
        }
    }

    /// The results of one run, in seconds unless stated otherwise.
    struct Facts: Codable {
        var open = 0.0
        /// The time from the return of the open until the encrypted file is in place; for `beforeOpening`, the time of
        /// the open.
        var conversion = 0.0
        /// The longest write that the switch did not delay.
        var longestWriteBefore = 0.0
        var longestReadBefore = 0.0
        /// The longest write that the switch delayed.
        var longestWriteAtSwitch = 0.0
        var longestReadAtSwitch = 0.0
        var writes = 0
        var reads = 0
        /// How long the app worked.
        var seconds = 0.0
        /// The time from the first event to each stage.
        var stages: [String] = []
        var postponements = 0

        /// Reads and writes per second.
        var throughput: Double { Double(writes + reads) / seconds }
    }

    /// The first argument with which this program runs as such an app.
    static let word = "app"
    static let readers = 4
    static let writesPerSecond = 200

    let database: URL
    let mode: Mode
    /// How long the app works if nothing is encrypted.
    let seconds: Double

    /// Works, and prints the facts as JSON.
    func run() throws {
        let facts = try work()
        FileHandle.standardOutput.write(try JSONEncoder().encode(facts))
    }

    private func work() throws -> Facts {
        var facts = Facts()
        let began = ContinuousClock.now
        let stages = Stages(began)
        var options = EncryptedStore.Options()
        options.maximumReaders = Self.readers
        options.events = { stages.note($0) }
        var encryption = Configuration.Encryption(isEnabled: mode != .plaintext)
        encryption.when = mode == .beforeOpening ? .beforeOpening : .whileOpen
        let configuration = Configuration(
            databaseName: database.lastPathComponent, version: 23, encryption: encryption)
        let key = try CipherKey.passphrase("a passphrase of some length")
        let store = try EncryptedStore.openBlocking(
            configuration, directory: database.deletingLastPathComponent(),
            keyProvider: .closure { _, _ in key }, options: options)
        let opened = ContinuousClock.now
        facts.open = (opened - began).inSeconds
        guard mode != .beforeOpening else {
            facts.conversion = facts.open
            try store.closeBlocking()
            return facts
        }
        let loads = mode.loads.map { Load($0, store) }
        if let conversion = store.conversion {
            try Waiting.for { _ = try await conversion.value }
            facts.conversion = (ContinuousClock.now - opened).inSeconds
        } else {
            // The app works for this long, and nothing ends it earlier.
            Thread.sleep(forTimeInterval: seconds)
        }
        let ended = ContinuousClock.now
        for load in loads { try load.end() }
        facts.seconds = (ended - opened).inSeconds
        try store.closeBlocking()
        let writes = loads.filter(\.isWriting).flatMap(\.calls)
        let reads = loads.filter { !$0.isWriting }.flatMap(\.calls)
        facts.writes = writes.count { $0.end <= ended }
        facts.reads = reads.count { $0.end <= ended }
        (facts.stages, facts.postponements) = stages.told
        // Includes the last checkpoint before the switch: calls already wait then.
        let switching = stages.latest(.quiescing)
        let isHeld = { (call: Load.Call) in switching.map { call.end > $0 && call.begin < stages.end } ?? false }
        let longest = { (calls: [Load.Call]) in calls.map(\.seconds).max() ?? 0 }
        facts.longestWriteBefore = longest(writes.filter { !isHeld($0) })
        facts.longestReadBefore = longest(reads.filter { !isHeld($0) })
        facts.longestWriteAtSwitch = longest(writes.filter(isHeld))
        facts.longestReadAtSwitch = longest(reads.filter(isHeld))
        return facts
    }
}

/// When each stage of an encryption began.
// Unchecked, but safe: everything is read and written only under `lock`.
private final class Stages: @unchecked Sendable {
    private let lock = NSLock()
    private let began: ContinuousClock.Instant
    private var begun: [(stage: UpgradeStage, at: ContinuousClock.Instant)] = []
    private var postponements = 0
    private var ended: ContinuousClock.Instant

    init(_ began: ContinuousClock.Instant) {
        self.began = began
        ended = began
    }

    func note(_ event: StoreEvent) {
        lock.withLock {
            switch event.kind {
            case .stage(let stage): begun.append((stage, .now))
            case .encryptionPostponed: postponements += 1
            case .encrypted: ended = .now
            default: break
            }
        }
    }

    var end: ContinuousClock.Instant { lock.withLock { ended } }

    func latest(_ stage: UpgradeStage) -> ContinuousClock.Instant? {
        lock.withLock { begun.last { $0.stage == stage }?.at }
    }

    var told: (stages: [String], postponements: Int) {
        lock.withLock {
            let end = [("end", ended)]
            let all = begun.map { ($0.stage.rawValue, $0.at) } + end
            return (all.map { "\($0.0) \(String(format: "%.3f", ($0.1 - began).inSeconds))" }, postponements)
        }
    }
}

/// A thread that reads or writes until it is told to stop.
// Unchecked, but safe: only the thread uses `calls` and `failure` until `done` is signalled; `isEnding` is read and
// written under `lock`.
private final class Load: @unchecked Sendable {
    enum Kind {
        case reading(Int)
        case writing
        case writingWithoutPause
    }

    struct Call {
        let begin: ContinuousClock.Instant
        let end: ContinuousClock.Instant
        var seconds: Double { (end - begin).inSeconds }
    }

    let isWriting: Bool
    private(set) var calls: [Call] = []
    private var failure: (any Error)?
    private let lock = NSLock()
    private var isEnding = false
    private let done = DispatchSemaphore(value: 0)

    init(_ kind: Kind, _ store: EncryptedStore) {
        if case .reading = kind { isWriting = false } else { isWriting = true }
        Thread { [self] in
            do {
                switch kind {
                case .reading(let number): try read(store, number)
                case .writing: try write(store)
                case .writingWithoutPause: try writeWithoutPause(store)
                }
            } catch {
                failure = error
            }
            done.signal()
        }.start()
    }

    func end() throws {
        lock.withLock { isEnding = true }
        done.wait()
        if let failure { throw failure }
    }

    private var goesOn: Bool { lock.withLock { !isEnding } }

    private func timing(_ body: () throws -> Void) rethrows {
        let begin = ContinuousClock.now
        try body()
        calls.append(Call(begin: begin, end: .now))
    }

    private func read(_ store: EncryptedStore, _ number: Int) throws {
        var user = number
        while goesOn {
            user = (user + 37) % 500
            let uid = "user-\(user)"
            try timing {
                _ = try store.readBlocking { db in
                    try db.values(
                        String?.self, "SELECT body FROM chat WHERE uid = \(uid) ORDER BY sentAt DESC LIMIT 50")
                }
            }
            // The pause of a person between two reads, which is part of the measured load.
            Thread.sleep(forTimeInterval: 0.005)
        }
    }

    private func write(_ store: EncryptedStore) throws {
        let began = ContinuousClock.now
        var number = 0
        while goesOn {
            let due = began + .seconds(1) / OnlineApp.writesPerSecond * number
            let rest = (due - ContinuousClock.now).inSeconds
            // The pace of the writes, which is part of the measured load.
            if rest > 0 { Thread.sleep(forTimeInterval: rest) }
            number += 1
            try timing { try store.writeBlocking { [self, number] in try insert(number, $0) } }
        }
    }

    /// Runs one transaction after the other, each of which adds 45 messages in 45 ms or slightly more.
    private func writeWithoutPause(_ store: EncryptedStore) throws {
        var number = 0
        while goesOn {
            try timing {
                try store.writeBlocking { [self, number] db in
                    for message in number + 1...number + 45 {
                        try insert(message, db)
                        // The work of the app within its transaction, which is part of the measured load.
                        Thread.sleep(forTimeInterval: 0.001)
                    }
                }
            }
            number += 45
        }
    }

    private func insert(_ number: Int, _ db: Connection) throws {
        let (uid, body, sentAt) = (
            "user-\(number % 500)", "message \(number), of some length", 1_700_000_000_000 + number
        )
        try db.execute("INSERT INTO chat(uid, body, sentAt) VALUES (\(uid), \(body), \(sentAt))")
    }
}

/// Blocks a thread until an asynchronous operation has ended.
enum Waiting {
    // Unchecked, but safe: `value` is written before the semaphore is signalled, and read after waiting for the
    // semaphore.
    private final class Answer: @unchecked Sendable {
        var value: Result<Void, any Error>?
    }

    static func `for`(_ body: @escaping @Sendable () async throws -> Void) throws {
        let done = DispatchSemaphore(value: 0)
        let answer = Answer()
        Task {
            do {
                try await body()
                answer.value = .success(())
            } catch {
                answer.value = .failure(error)
            }
            done.signal()
        }
        done.wait()
        try answer.value?.get()
    }
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
