import Foundation

/// What the states of one scenario came to.
struct Outcome {
    var points = 0
    var states = 0
    var old = 0
    var new = 0
    var losses: [String] = []
}

/// The table that is printed.
enum Table {
    static func header() {
        line(["scenario", "points", "states", "old", "new", "losses"])
    }

    static func row(_ name: String, _ outcome: Outcome) {
        let numbers = [outcome.points, outcome.states, outcome.old, outcome.new, outcome.losses.count]
        line([name] + numbers.map(String.init))
        for loss in outcome.losses.prefix(20) { print("  \(loss)") }
        if outcome.losses.count > 20 { print("  and \(outcome.losses.count - 20) more") }
        fflush(nil)
    }

    private static func line(_ cells: [String]) {
        let first = cells[0].padding(toLength: 20, withPad: " ", startingAt: 0)
        print(first + cells.dropFirst().map { String(repeating: " ", count: max(1, 9 - $0.count)) + $0 }.joined())
    }
}
