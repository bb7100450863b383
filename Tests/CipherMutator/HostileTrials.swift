import CipherPlatform
import CipherTestSupport
import Foundation

/// The malicious databases, each of which is planned for, migrated and upgraded in separate processes.
enum HostileTrials {
    /// Prints how each trial ended, and returns whether all ended as they must.
    static func run(includingSlow: Bool) throws -> Bool {
        var isGood = true
        for database in HostileDatabase.all where includingSlow || !database.isSlow {
            let folder = try TemporaryFolder()
            try database.write(folder)
            let faults = try [FileTrial.faultOfPlanning(folder), FileTrial.faultOfMigrating(folder)].compactMap { $0 }
            let began = Date()
            let trial = try FileTrial.run(folder)
            let seconds = Date().timeIntervalSince(began)
            tell(
                "\(trial.outcome)\t\(String(format: "%.1f", seconds)) s\t\(peak >> 10) MB so far\t\(database.name)")
            for fault in faults { tell("fault: \(fault)") }
            if let fault = trial.fault { tell("fault: \(fault)") }
            if trial.outcome != database.outcome { tell("fault: expected \(database.outcome); \(trial.message)") }
            isGood = isGood && faults.isEmpty && trial.fault == nil && trial.outcome == database.outcome
        }
        return isGood
    }

    /// The peak memory of any of these processes, in KiB.
    private static var peak: Int {
        var usage = rusage()
        #if canImport(Glibc)
            guard getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage) == 0 else { return 0 }
        #else
            guard getrusage(RUSAGE_CHILDREN, &usage) == 0 else { return 0 }
        #endif
        return usage.ru_maxrss
    }
}
