internal import CipherStore
import CipherTestSupport
import Foundation

/// Stores that are encrypted while several threads write to them, are killed, and are opened again.
///
/// Each thread keeps outside the store what the store has acknowledged; in the end, both must be equal.
struct OnlineTrial {
    let seed: Int
    /// How many processes there are at once: one process has all threads, or each thread has its own.
    let processes: Int
    /// How many changes each thread requests.
    let changes: Int

    struct Result {
        var kills = 0
        var acknowledged = 0
        var losses: [String] = []
    }

    private static let threads = 8
    private static let rowsOfThread = 60
    /// The number of rows that nobody writes.
    private var untouched: Int { processes > 1 ? 300 : 3_000 }

    func run() throws -> Result {
        let file = try LegacyFile { connection in
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript(
                text: """
                    CREATE TABLE old(id INTEGER PRIMARY KEY, body BLOB);
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(untouched))
                    INSERT INTO old(body) SELECT zeroblob(3000 + i) FROM n;
                    """)
        }
        var result = Result()
        let hosts = (0..<processes).map { _ in StoreHost(file.path) }
        let writers = (0..<Self.threads).map { number in
            OnlineWriter(
                RowOracle(first: number * 1_000, count: Self.rowsOfThread), seed: seed * 100 + number,
                changes: changes, hosts[number % processes])
        }
        var random = SeededRandom(seed: UInt64(truncatingIfNeeded: seed &* 7_919 &+ 1))
        while !writers.allSatisfy(\.hasEnded) {
            let host = random.pick(hosts)
            if random.oneIn(12) {
                host.kill()
                result.kills += 1
            } else {
                disturb(host, &random)
            }
        }
        for host in hosts.dropLast() { try host.end() }
        let found = try lastRows(hosts[processes - 1])
        result.losses = writers.flatMap { $0.failures + $0.oracle.losses(in: found) }
        result.acknowledged = writers.reduce(0) { $0 + $1.oracle.acknowledged }
        result.losses += try remains(file)
        return result
    }

    /// What an app does besides reading and writing.
    private func disturb(_ host: StoreHost, _ random: inout SeededRandom) {
        var words = ["pause", "continue", "continue", "hurry", "dawdle", "sleep", "checkpoint"]
        // While others have the file open, no process has it to itself, and a changed schema requires another copy.
        if processes == 1 { words += ["vacuum", "alter", "restore"] }
        _ = host.ask(random.pick(words))
        // The store itself sets the pace.
        for _ in 0..<random.below(20) { _ = host.ask("version \(random.below(8_000))") }
    }

    /// Returns the rows after the file has been encrypted.
    private func lastRows(_ host: StoreHost) throws -> [Int: Int] {
        while true {
            guard let outcome = host.ask("finish"), outcome.hasPrefix("ok") else {
                throw Failure(text: "the file is not encrypted: \(host.ask("finish") ?? "no answer")")
            }
            guard let answer = host.ask("all"), answer.hasPrefix("ok") else {
                throw Failure(text: "the rows are incomplete or damaged: \(host.ask("all") ?? "no answer")")
            }
            let bytes = 3_000 * untouched + untouched * (untouched + 1) / 2
            let old = host.ask("old")
            guard old == "ok \(untouched) \(bytes).0" else {
                throw Failure(text: "the rows that nobody wrote are incomplete or damaged: \(old ?? "no answer")")
            }
            try host.end()
            return RowOracle.rows(String(answer.dropFirst(3)))
        }
    }

    /// Returns which files are left that must not be there, and whether the file is still plaintext.
    private func remains(_ file: LegacyFile) throws -> [String] {
        let names = try file.folder.names
        let isEncrypted = try !Data(contentsOf: URL(filePath: file.path)).starts(with: Data("SQLite format 3".utf8))
        return (names == ["app.db"] ? [] : ["files left: \(names)"]) + (isEncrypted ? [] : ["the file is plaintext"])
    }
}

/// The processes that open a store of a file, one at a time.
// Unchecked, but safe: `process` is read and written under `lock`.
final class StoreHost: @unchecked Sendable {
    private let path: String
    private let lock = NSLock()
    private var process: StoreProcess?

    init(_ path: String) { self.path = path }

    /// Returns the answer of the current process, which is started if there is none; `nil` if it ends meanwhile.
    func ask(_ text: String) -> String? {
        guard let process = lock.withLock({ present() }) else { return nil }
        let answer = process.ask(text)
        if answer == nil { lock.withLock { if self.process === process { self.process = nil } } }
        return answer
    }

    private func present() -> StoreProcess? {
        if process == nil { process = try? StoreProcess(path) }
        return process
    }

    /// Kills the current process; no other one starts before it has ended.
    func kill() {
        lock.withLock {
            process?.kill()
            process = nil
        }
    }

    func end() throws {
        try lock.withLock {
            try process?.end()
            process = nil
        }
    }
}

/// A thread that makes a store write, and knows which rows the store must contain.
// Unchecked, but safe: what changes belongs to the thread until `hasEnded`, which is read and written under `lock`.
final class OnlineWriter: @unchecked Sendable {
    private(set) var oracle: RowOracle
    private(set) var failures: [String] = []
    private let lock = NSLock()
    private var isDone = false

    init(_ oracle: RowOracle, seed: Int, changes: Int, _ host: StoreHost) {
        self.oracle = oracle
        Thread.detachNewThread { [self] in
            var random = SeededRandom(seed: UInt64(seed))
            do {
                for _ in 0..<changes {
                    let change = self.oracle.draw(&random)
                    _ = try self.oracle.write(change, host.ask)
                }
            } catch {
                failures.append("\(error)")
            }
            lock.withLock { isDone = true }
        }
    }

    var hasEnded: Bool { lock.withLock { isDone } }
}
