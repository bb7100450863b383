internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The options that make a command work on all databases below a folder.
enum FleetOptions {
    static let recursive = Option(
        "recursive", "Take a folder, and work on every database in it and below. With --json there is a line for each.")
    static let jobs = Option(
        "jobs", value: "N", "With --recursive: how many databases at a time (as many as there are processors).")
    static let name = Option(
        "name", value: "PATTERN", kind: .pattern,
        "With --recursive: only files whose name matches, such as 'tenant-*.db'.")
    static let filesFrom = Option(
        "files-from", value: "LIST", kind: .file,
        "With --recursive: the files that a list names, in place of a search; - is standard input. A name is one of a file "
            + "below the folder. Names are separated by newlines or, where there is one, by NUL.")
    static let shard = Option(
        "shard", value: "K/N",
        "With --recursive: one of N parts of the files, K from 0 to N-1. By default the number of the task in a Slurm array."
    )
    static let shards = Option(
        "shards", value: "N",
        "With --recursive: how many parts there are, where SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX tells which one."
    )
    static let report = Option(
        "report", value: "FILE", kind: .file,
        "With --recursive: add a line of JSON for each file to this report, which cipherstore report reads.")
    static let resume = Option(
        "resume", value: "FILE", kind: .file, isRepeatable: true,
        "With --recursive: leave out the files that are done by this report and unchanged; may be given several times. The "
            + "file that --report names need not exist.")
    static let maxOpen = Option(
        "max-open", value: "N",
        "With --recursive: never more than N open files, so that fewer jobs run where N does not suffice for them.")
    static let nice = Option(
        "nice", value: "N", "With --recursive: run with a lower priority for processors and disks, N from 1 to 19.")
    static let bytesPerSecond = Option(
        "bytes-per-second", value: "N",
        "With --recursive: begin files of no more than N bytes a second on average; K, M and G may follow the number.")

    static let all = [
        recursive, jobs, name, filesFrom, shard, shards, report, resume, maxOpen, nice, bytesPerSecond,
    ]

    /// The options that do not decide what is done to a file.
    static let withoutEffectOnFiles = all + [.json, .progress, .lockTimeout, .busyTimeout]

    /// What the help of each such command says.
    static let note =
        "With --recursive the exit status is the number of databases that failed, 63 for that many or more; the rest of "
        + "the numbers mean that the run as a whole failed or was ended. A database that fails stops no other. Run the "
        + "command again to go on: what is done already is reported as such. Symbolic links are not followed."

    /// Whether a folder was asked for.
    ///
    /// - Throws: ``CommandFailure`` with `usage` where an option only makes sense with a folder.
    static func isFleet(_ invocation: Invocation) throws -> Bool {
        if invocation.has(recursive) { return true }
        if let path = invocation.operands.first, try FileSystem.status(path)?.isDirectory == true {
            throw CommandFailure(
                .badData, StoreError.Code.notAFile.rawValue, path: path, "this is a directory",
                advice: "give the path of a database file, or add --\(recursive.name) to work on every database in it")
        }
        if let option = all.first(where: invocation.has) {
            throw CommandFailure.usage("--\(option.name) is for --\(recursive.name)")
        }
        return false
    }

    static func jobs(_ invocation: Invocation) throws -> Int {
        guard let text = invocation[jobs] else { return min(64, ProcessInfo.processInfo.activeProcessorCount) }
        guard let count = Int(text), (1...64).contains(count) else {
            throw CommandFailure.usage("--\(jobs.name) takes a number from 1 to 64")
        }
        return count
    }

    static func names(_ invocation: Invocation, default usual: DatabaseSearch.Names) throws -> DatabaseSearch.Names {
        guard let pattern = invocation[name] else { return usual }
        guard !invocation.has(filesFrom) else {
            throw CommandFailure.usage("--\(name.name) and --\(filesFrom.name) cannot be given together")
        }
        return .matching(pattern)
    }

    /// A number of bytes, such as `50M`; `nil` where the option was not given.
    static func bytesPerSecond(_ invocation: Invocation) throws -> Double? {
        guard let text = invocation[bytesPerSecond] else { return nil }
        let powers: [Character: Int] = ["K": 10, "M": 20, "G": 30]
        let power = text.last.flatMap { powers[$0] }
        guard let number = Int(power == nil ? text : String(text.dropLast())), (1...1 << 30).contains(number) else {
            throw CommandFailure.usage(
                "--\(bytesPerSecond.name) takes a number of bytes such as 50M, where K, M and G are powers of 1,024")
        }
        return Double(number) * Double(1 << (power ?? 0))
    }
}
