import Foundation

/// Kills a store at random moments while it is written to, several times for each file.
struct Durability: Sendable {
    static let usage = "durability [--kills N] [--seed N]"
    private static let killsOfFile = 10

    private struct Sums {
        var early = 0
        var acknowledged = 0
        var beyond = 0
    }

    private let session: Session
    private let subject: Subject
    private let kills: Int
    private let seed: Int
    private let sums = Locked(Sums())
    private let report = Report("durability", widths: [28, -9])

    init(_ arguments: some Sequence<String>, in session: Session) throws {
        let options = try Options(arguments, usage: Self.usage, valued: ["--kills", "--seed"])
        kills = try options.number("--kills") ?? 100
        seed = try options.number("--seed") ?? 4
        self.session = session
        subject = try Subject(in: session, isRepeatable: false)
    }

    /// Returns whether nothing was lost.
    func run() throws -> Bool {
        let first = Array(stride(from: 1, through: kills, by: Self.killsOfFile))
        try Workers.run(first, in: session) { first, worker in
            try run(first...min(kills, first + Self.killsOfFile - 1), worker)
        }
        let sums = sums.with { $0 }
        report.row("kills", String(kills))
        report.row("of them before a row", String(sums.early))
        report.row("rows acknowledged", String(sums.acknowledged))
        report.row("rows found beyond", String(sums.beyond))
        report.row("losses", String(report.losses))
        return try report.conclude { $0.losses == 0 ? "no losses" : "\($0.losses) losses" }
    }

    /// Kills the writer of one file once for each number.
    private func run(_ numbers: ClosedRange<Int>, _ worker: Worker) throws {
        var random = UInt64(truncatingIfNeeded: seed &* 1_000_003 &+ numbers.lowerBound)
        try FolderState(files: [:], numbers: [:]).lay(at: worker.folder, Inodes())
        // Creates the table and a first row, so that there is something to count.
        let first = try worker.run(subject.command(["write", worker.folder, "1"])).output
        guard var acknowledged = Int(first) else { throw TrialError(detail: "the store cannot be made: \(first)") }
        for number in numbers {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let last = try kill(worker, after: 0.030 + Double(random >> 33 % 400) / 1_000)
            if last == nil { sums.with { $0.early += 1 } }
            let least = last ?? acknowledged
            let found = try worker.run(subject.command(["count", worker.folder])).output
            report.add(points: 1)
            if let rows = Int(found), (least...least + 1).contains(rows) {
                sums.with { $0.beyond += rows - least }
                acknowledged = rows
            } else {
                report.complain("kill \(number)", ["\(least) rows acknowledged, found: \(found)"])
            }
        }
        sums.with { $0.acknowledged += acknowledged }
    }

    /// Returns the last row that the writer acknowledged before it was killed.
    private func kill(_ worker: Worker, after seconds: Double) throws -> Int? {
        let command = subject.command(["write", worker.folder])
        let process = try command.start(in: session, output: worker.output)
        // Waits for nothing: the moment of the kill is random.
        Thread.sleep(forTimeInterval: seconds)
        Session.killGroup(of: process)
        let ending = try command.end(process, in: session, output: worker.output)
        let last = ending.output.split(separator: "\n").last
        guard ending.cause == .killed(SIGKILL) else {
            throw TrialError(detail: "the writer ended by itself: \(last ?? "")")
        }
        return last.flatMap { Int($0) }
    }
}
