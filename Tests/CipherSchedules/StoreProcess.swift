import CipherTestSupport
import Foundation

/// A process with a store, which answers several threads at a time.
// Unchecked, but safe: `answers`, `next` and `hasEnded` are read and written under `condition`, and only one thread
// reads the pipe of the process.
final class StoreProcess: @unchecked Sendable {
    private let running: TestProgram.Running
    private let condition = NSCondition()
    private var answers: [Int: String] = [:]
    private var next = 0
    private var hasEnded = false

    /// Opens the store.
    ///
    /// - Throws: ``Failure`` with the output of the process if it cannot open the store.
    init(_ path: String) throws {
        running = try TestProgram.built("CipherCrashSubject").start(["serve", path])
        let first = try running.line()
        guard first == "ready" else {
            _ = try running.wait()
            throw Failure(text: "the store does not open: \(first)")
        }
        Thread.detachNewThread { [self] in
            while let line = try? running.line(), !line.isEmpty {
                let words = line.split(separator: " ", maxSplits: 1)
                guard let number = Int(words[0]) else { break }
                condition.withLock {
                    answers[number] = words.count > 1 ? String(words[1]) : ""
                    condition.broadcast()
                }
            }
            condition.withLock {
                hasEnded = true
                condition.broadcast()
            }
        }
    }

    /// Returns the answer of the process; `nil` if it has ended.
    func ask(_ text: String) -> String? {
        condition.withLock {
            next += 1
            let number = next
            guard !hasEnded, (try? running.tell("\(number) \(text)")) != nil else { return nil }
            while answers[number] == nil, !hasEnded { condition.wait() }
            return answers.removeValue(forKey: number)
        }
    }

    /// Ends the process as a crash would.
    func kill() {
        running.kill()
        condition.withLock { while !hasEnded { condition.wait() } }
        _ = try? running.wait()
    }

    /// Closes the store and ends the process.
    func end() throws {
        condition.withLock {
            try? running.tell("quit")
            while !hasEnded { condition.wait() }
        }
        let ending = try running.wait()
        guard ending.status == 0, !ending.wasKilled else { throw Failure(text: "the process failed: \(ending.errors)") }
    }
}
