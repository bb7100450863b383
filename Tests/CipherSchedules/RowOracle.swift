import Foundation

/// The required rows of one writer, kept outside the store: the version of each row, as far as it was acknowledged.
struct RowOracle {
    /// The first of the writer's rows, which no other writer has.
    let first: Int
    let count: Int
    private var versions: [Int: Int] = [:]
    private var latest = 0
    /// A change that was requested, and was either never answered or answered with an error.
    ///
    /// It happened as a whole or not at all.
    private var open: Change?
    private(set) var acknowledged = 0

    /// A change of consecutive rows; it has no version if they are deleted.
    struct Change {
        let rows: Range<Int>
        let version: Int?

        var request: String {
            let range = "\(rows.lowerBound) \(rows.count)"
            return version.map { "put \(range) \($0)" } ?? "drop \(range)"
        }
    }

    init(first: Int, count: Int) {
        self.first = first
        self.count = count
    }

    mutating func draw(_ random: inout some RandomNumberGenerator) -> Change {
        let start = first + Int.random(in: 0..<count, using: &random)
        let length = [1, 1, 1, 1, 3, 20].randomElement(using: &random) ?? 1
        latest += 1
        let isPut = Int.random(in: 0..<4, using: &random) > 0
        return Change(rows: start..<min(start + length, first + count), version: isPut ? latest : nil)
    }

    /// Makes a store perform the change, after resolving the open one.
    ///
    /// - Returns: Whether the change was requested and answered.
    mutating func write(_ change: Change, _ ask: (String) -> String?) throws -> Bool {
        guard try clearUp(ask) else { return false }
        open = change
        guard let answer = ask(change.request) else { return false }
        if answer.hasPrefix("ok") {
            apply(change)
            open = nil
            acknowledged += 1
        }
        return true
    }

    private mutating func apply(_ change: Change) {
        for row in change.rows { versions[row] = change.version }
    }

    /// Finds out whether a change that was not acknowledged happened.
    private mutating func clearUp(_ ask: (String) -> String?) throws -> Bool {
        guard let change = open else { return true }
        // A process that is killed between writing its commit's frame and updating the index of the log leaves a commit
        // that other processes do not see. A later recovery of the log does see it, unless another commit has
        // overwritten it.
        guard let overwritten = ask("put \(first + count) 1 0") else { return false }
        guard overwritten.hasPrefix("ok") else { return false }
        // The rows of a change are from one transaction, so one of them is enough.
        for row in change.rows where versions[row] != change.version {
            guard let answer = ask("version \(row)") else { return false }
            guard answer.hasPrefix("ok") else { return false }
            let found = Int(answer.dropFirst(3))
            if found == change.version {
                apply(change)
            } else if found != versions[row] {
                throw Failure(text: "row \(row): version \(answer.dropFirst(3)) for \(versions[row] ?? 0)")
            }
            break
        }
        open = nil
        return true
    }

    /// Compares the rows in the store with the required ones.
    func losses(in found: [Int: Int]) -> [String] {
        (first..<first + count).filter { row in
            if found[row] == versions[row] { return false }
            return !(open.map { $0.rows.contains(row) && found[row] == $0.version } ?? false)
        }.map { "row \($0): \(found[$0].map(String.init) ?? "none") for \(versions[$0].map(String.init) ?? "none")" }
    }

    /// The rows that ``ServedStore`` reports.
    static func rows(_ answer: String) -> [Int: Int] {
        let pairs = answer.split(separator: ",").compactMap { pair -> (Int, Int)? in
            let words = pair.split(separator: "=").compactMap { Int($0) }
            return words.count == 2 ? (words[0], words[1]) : nil
        }
        return Dictionary(pairs) { $1 }
    }
}
