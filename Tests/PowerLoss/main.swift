import Foundation

// Records one run of a CrashSubject operation and rebuilds what a disk may hold after a power loss at each of its calls:
//
//   PowerLoss SUBJECT [--quick] [SCENARIO…]
//   PowerLoss scenarios                      their names
//
// SUBJECT is the CrashSubject executable. --quick leaves out the states in which single writes are lost, kept or torn.
// Prints a table; fails where something was lost.

var arguments = Array(CommandLine.arguments.dropFirst())
let isQuick = arguments.contains("--quick")
arguments.removeAll { $0 == "--quick" }
guard let subject = arguments.first else {
    print("usage: PowerLoss SUBJECT [--quick] [SCENARIO…]")
    exit(64)
}
if subject == "scenarios" {
    print(Scenario.all.map(\.name).joined(separator: " "))
    exit(0)
}
let names = arguments.dropFirst()
let scenarios = Scenario.all.filter { names.isEmpty || names.contains($0.name) }
guard names.allSatisfy({ name in scenarios.contains { $0.name == name } }) else {
    print("scenarios: " + Scenario.all.map(\.name).joined(separator: ", "))
    exit(64)
}
do {
    var losses = 0
    Table.header()
    for scenario in scenarios {
        let row = try Experiment(subject: subject, scenario: scenario).run(isQuick ? .quick : .exhaustive)
        Table.row(scenario.name, row)
        losses += row.losses.count
    }
    exit(losses == 0 ? 0 : 1)
} catch {
    print("\(error)")
    exit(70)
}
