internal import CipherStore
import CipherTestSupport
import Foundation

// Damages files as determined by a seed, upgrades them, and judges the results. Scripts/fuzz runs it. The commands are:
//
//   run FIRST STEP SECONDS [FOLDER]   runs the trials FIRST, FIRST + STEP and so on; inputs that failed go to FOLDER
//   some FIRST COUNT                  runs COUNT trials
//   one NUMBER                        runs one trial
//   judge FOLDER                      upgrades a copy of FOLDER/app.db and judges it
//   read FIRST STEP SECONDS           reads damaged databases with the page reader, 256 in each process
//   reading FIRST COUNT               does the work of such a process
//   recover FIRST COUNT [SHELL]       recovers COUNT damaged databases, also with a shell's .recover, and counts the rows
//   heal FIRST COUNT                  encrypts COUNT databases with damaged indexes or page lists, and counts the results
//   hostile [fast]                    upgrades every malicious database, and prints the time and peak memory
//   values COUNT                      writes and reads COUNT values of each type in each kind of column
//   memory FILE KEYFILE               upgrades, closes, prints "ready", and waits until its memory was examined
//   upgrade FILE                      does the work of a trial, in a separate process
//   plan FILE                         does the work of a planning trial, in a separate process
//   migrate FILE                      opens the file without encryption under another schema, in a separate process
//   compare FILE OTHER encrypted|plaintext   prints where the two files differ

let arguments = CommandLine.arguments
func argument(_ index: Int) -> String { index < arguments.count ? arguments[index] : "" }

func judge(_ source: String) throws {
    let folder = try TemporaryFolder()
    for name in try FileManager.default.contentsOfDirectory(atPath: source) where name.hasPrefix("app.db") {
        try FileManager.default.copyItem(atPath: source + "/" + name, toPath: folder.path(name))
    }
    let trial = try FileTrial.run(folder)
    print(trial.outcome)
    guard let fault = trial.fault else { return }
    print(fault)
    exit(1)
}

do {
    switch argument(1) {
    case "run":
        guard let first = UInt64(argument(2)), let step = UInt64(argument(3)), let seconds = Int(argument(4)) else {
            exit(64)
        }
        var fuzzing = try Fuzzing(keep: arguments.count > 5 ? argument(5) : nil)
        try fuzzing.run(from: first, step: step, count: nil, seconds: seconds)
        exit(fuzzing.faults == 0 ? 0 : 1)
    case "some":
        guard let first = UInt64(argument(2)), let count = Int(argument(3)) else { exit(64) }
        var fuzzing = try Fuzzing(keep: nil)
        try fuzzing.run(from: first, step: 1, count: count, seconds: 600)
        exit(fuzzing.faults == 0 ? 0 : 1)
    case "one":
        guard let number = UInt64(argument(2)) else { exit(64) }
        var fuzzing = try Fuzzing(keep: arguments.count > 3 ? argument(3) : nil)
        try fuzzing.run(from: number, step: 1, count: 1, seconds: 600)
        exit(fuzzing.faults == 0 ? 0 : 1)
    case "read":
        guard let first = UInt64(argument(2)), let step = UInt64(argument(3)), let seconds = Int(argument(4)) else {
            exit(64)
        }
        var fuzzing = try Fuzzing(keep: nil)
        try fuzzing.readInProcesses(from: first, step: step, seconds: seconds)
        exit(fuzzing.faults == 0 ? 0 : 1)
    case "reading":
        guard let first = UInt64(argument(2)), let count = UInt64(argument(3)) else { exit(64) }
        var fuzzing = try Fuzzing(keep: nil)
        try fuzzing.read(from: first, count: count)
        fuzzing.tellCounts()
        exit(fuzzing.faults == 0 ? 0 : 1)
    case "recover":
        guard let first = UInt64(argument(2)), let count = UInt64(argument(3)) else { exit(64) }
        var trials = try RecoveryTrials(shell: arguments.count > 4 ? argument(4) : nil)
        try trials.run(from: first, count: count)
        exit(trials.faults == 0 ? 0 : 1)
    case "heal":
        guard let first = UInt64(argument(2)), let count = UInt64(argument(3)) else { exit(64) }
        var trials = IndexDamageTrials()
        try trials.run(from: first, count: count)
        exit(trials.faults == 0 ? 0 : 1)
    case "values":
        guard let count = Int(argument(2)) else { exit(64) }
        var trials = ValueTrials(count: count)
        try trials.run()
        for fault in trials.faults { print(fault) }
        print("\(trials.combinations) combinations of \(count) values, \(trials.faults.count) differences")
        exit(trials.faults.isEmpty ? 0 : 1)
    case "memory":
        try Subject.upgrade(argument(2), FileKeyProvider(path: argument(3)))
        print("ready")
        fflush(nil)
        _ = readLine()
    case "hostile": exit(try HostileTrials.run(includingSlow: argument(2) != "fast") ? 0 : 1)
    case "judge": try judge(argument(2))
    case "plan": try Subject.plan(argument(2))
    case "migrate": try Subject.migrate(argument(2))
    case "upgrade": try Subject.upgrade(argument(2))
    case "compare": try Subject.compare(argument(2), argument(3), isEncrypted: argument(4) == "encrypted")
    default:
        print(
            "usage: CipherMutator run FIRST STEP SECONDS [FOLDER], CipherMutator one NUMBER, CipherMutator judge FOLDER"
        )
        exit(64)
    }
} catch let error as StoreError {
    print("\(error.code.rawValue): \(error)")
    exit(2)
} catch {
    print("\(type(of: error)): \(error)")
    exit(3)
}
