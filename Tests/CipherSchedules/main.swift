import CipherTestSupport
import Foundation

// Connections that are there before a file is converted, or come meanwhile, and go on afterwards.
//
// Usage: CipherSchedules SEED COUNT [untold]
//
// Runs COUNT schedules, those of the next seed are others until all were run, and prints how many there were, how many
// conversions were refused, how many rows were acknowledged and how many losses there were. With "untold" each file is
// another user's, so that a process without CAP_LEASE cannot tell who has it open.

let arguments = CommandLine.arguments
guard arguments.count >= 3, let seed = Int(arguments[1]), let count = Int(arguments[2]) else { exit(64) }
let isUntold = arguments.dropFirst(3).first == "untold"
var (refused, acknowledged, losses) = (0, 0, 0)
for number in seed * count..<(seed + 1) * count {
    let schedule = Schedule(number)
    do {
        let result = try Trial(schedule: schedule, isUntold: isUntold).run()
        refused += result.wasRefused ? 1 : 0
        acknowledged += result.acknowledged
        losses += result.losses.count
        for loss in result.losses { print("\(number): \(schedule): \(loss)") }
    } catch {
        losses += 1
        print("\(number): \(schedule): \(error)")
    }
    fflush(nil)
}
print("schedules \(count) refused \(refused) acknowledged \(acknowledged) losses \(losses)")
exit(losses == 0 ? 0 : 1)
