import CipherTestSupport
import Foundation

// Tests connections that are opened before or during the conversion of a file, and continue afterwards.
//
// Usage: CipherSchedules SEED COUNT [untold]
//        CipherSchedules SEED COUNT online PROCESSES CHANGES
//
// Runs COUNT schedules. The next seed runs other schedules, until all are run. Prints the numbers of schedules, refused
// conversions, acknowledged rows and losses. With "untold", each file belongs to another user, so that a process without
// CAP_LEASE cannot see who has it open.
//
// With "online", stores are encrypted while eight threads, in one process or in several, write to them, each CHANGES times.
// Prints the number of kills instead of refusals.

let arguments = CommandLine.arguments
guard arguments.count >= 3, let seed = Int(arguments[1]), let count = Int(arguments[2]) else { exit(64) }
if arguments.count == 6, arguments[3] == "online", let processes = Int(arguments[4]), let changes = Int(arguments[5]) {
    exit(online(seed * count..<(seed + 1) * count, processes, changes))
}
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

/// Runs the schedules for these numbers, and returns the exit status.
func online(_ numbers: Range<Int>, _ processes: Int, _ changes: Int) -> Int32 {
    var (kills, acknowledged, losses) = (0, 0, 0)
    for number in numbers {
        do {
            let result = try OnlineTrial(seed: number, processes: processes, changes: changes).run()
            kills += result.kills
            acknowledged += result.acknowledged
            losses += result.losses.count
            for loss in result.losses { print("\(number): \(loss)") }
        } catch {
            losses += 1
            print("\(number): \(error)")
        }
        fflush(nil)
    }
    print("schedules \(numbers.count) kills \(kills) acknowledged \(acknowledged) losses \(losses)")
    return losses == 0 ? 0 : 1
}

print("schedules \(count) refused \(refused) acknowledged \(acknowledged) losses \(losses)")
exit(losses == 0 ? 0 : 1)
