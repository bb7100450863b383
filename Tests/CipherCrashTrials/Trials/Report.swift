import CipherPlatform
import Foundation

/// The output of a kind of trials: a table on standard output, losses on standard error, and totals.
final class Report: Sendable {
    struct Totals {
        var points = 0
        var losses = 0
        /// Crashes in SQLCipher, which do not count as losses.
        var crashes = 0
        /// The number of disk states for all points.
        var states = 0
    }

    private let name: String
    /// The widths of the columns.
    ///
    /// The first columns contain text; those with numbers have negative widths.
    private let widths: [Int]
    private let totals = Locked(Totals())

    init(_ name: String, widths: [Int]) {
        self.name = name
        self.widths = widths
    }

    func row(_ cells: String...) {
        row(cells)
    }

    func row(_ cells: [String]) {
        let padded = zip(cells, widths).map { cell, width in
            let space = String(repeating: " ", count: max(0, abs(width) - cell.count))
            return width < 0 ? space + cell : cell + space
        }
        totals.with { _ in
            print(padded.joined(separator: " "))
            fflush(nil)
        }
    }

    /// Reports the losses at one point, or a limited number of them.
    func complain(_ point: String, _ losses: [String], telling most: Int = .max) {
        totals.with { totals in
            totals.losses += losses.count
            for loss in losses.prefix(most) { Self.tell("  \(point): \(loss)") }
            if losses.count > most { Self.tell("  \(point): and \(losses.count - most) more") }
        }
    }

    func add(points: Int, crashes: Int = 0, states: Int = 0) {
        totals.with { totals in
            totals.points += points
            totals.crashes += crashes
            totals.states += states
        }
    }

    var points: Int { totals.with { $0.points } }
    var losses: Int { totals.with { $0.losses } }

    func say(_ text: String) {
        Self.tell("\(name): \(text)")
    }

    /// Reports that the time limit was reached, if it was.
    func say(_ deadline: Deadline) {
        if deadline.isPast { say("ended after \(deadline.seconds) seconds; --seconds N gives more") }
    }

    /// Prints the totals, and returns whether nothing was lost.
    func conclude(_ text: (Totals) -> String) throws -> Bool {
        let totals = totals.with { $0 }
        if totals.crashes > 0 {
            say("\(totals.crashes) crashes inside SQLCipher without memory; each left the file intact")
        }
        guard totals.points > 0 else { throw TrialError(detail: "nothing was run") }
        say(text(totals))
        return totals.losses == 0
    }

    private static func tell(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }
}
