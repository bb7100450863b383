import Foundation

// Runs CipherCrashSubject's operations, disturbs each run at one point, and judges the result. The kinds of trials are:
//
//   kills …             a kill at each system call that can change something
//   faults …            a call or an allocation that fails
//   powerloss …         the states in which a power loss at each call can leave the disk
//   hostile-folder …    a name that another user replaces at each call
//   durability …        kills of a store at random moments while it is written to
//
// The options are those of the scripts with these names. CipherCrashSubject is the executable beside this one. Prints a
// table, and fails if something was lost.

let words = CommandLine.arguments.dropFirst()
let status: Int32
do {
    let session = try Session()
    defer { session.end() }
    let isWhole: Bool
    switch words.first {
    case "kills": isWhole = try Kills(words.dropFirst(), in: session).run()
    case "faults": isWhole = try Faults(words.dropFirst(), in: session).run()
    case "powerloss": isWhole = try PowerLoss(words.dropFirst(), in: session).run()
    case "hostile-folder": isWhole = try HostileFolder(words.dropFirst(), in: session).run()
    case "durability": isWhole = try Durability(words.dropFirst(), in: session).run()
    default:
        throw Options.UsageError(usage: "usage: CipherCrashTrials kills|faults|powerloss|hostile-folder|durability …")
    }
    status = isWhole ? 0 : 1
} catch let error as Options.UsageError {
    FileHandle.standardError.write(Data((error.usage + "\n").utf8))
    status = 64
} catch {
    FileHandle.standardError.write(Data("\(words.first ?? "CipherCrashTrials"): \(error)\n".utf8))
    status = 70
}
exit(status)
