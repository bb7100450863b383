internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// The options that make a command work on all databases below a folder.
enum FleetOptions {
    static let recursive = Option(
        "recursive",
        "Process every database in the folder and its subfolders. With --json, print one line for each database.")
    static let jobs = Option(
        "jobs", value: "N",
        "With --recursive: the number of databases to process at the same time (default: the number of processors).")
    static let name = Option(
        "name", value: "PATTERN", kind: .pattern,
        "With --recursive: process only files whose names match a pattern such as 'tenant-*.db'.")
    static let filesFrom = Option(
        "files-from", value: "LIST", kind: .file,
        "With --recursive: process the files in this list instead of searching the folder. If LIST is -, read the "
            + "list from standard input. Every file must be in the folder or its subfolders. Names are separated by "
            + "newlines or, if the list contains NULs, by NULs.")
    static let shard = Option(
        "shard", value: "K/N",
        "With --recursive: process only shard K of the N shards, where K is 0 to N-1. In a Slurm array, the default "
            + "is the task's shard."
    )
    static let shards = Option(
        "shards", value: "N",
        "With --recursive: the number of shards. Use this option if SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX "
            + "contains the number of this shard."
    )
    static let report = Option(
        "report", value: "FILE", kind: .file,
        "With --recursive: append one line of JSON per file to this report, which `cipherstore report` reads.")
    static let resume = Option(
        "resume", value: "FILE", kind: .file, isRepeatable: true,
        "With --recursive: skip the files that this report lists as done and that have not changed since. The option "
            + "may be repeated. The report need not exist if --report specifies the same file.")
    static let maxOpen = Option(
        "max-open", value: "N",
        "With --recursive: never have more than N files open. If N is too small for all jobs, fewer jobs run.")
    static let nice = Option(
        "nice", value: "N", "With --recursive: lower the processor and disk priority by N, a number from 1 to 19.")
    static let bytesPerSecond = Option(
        "bytes-per-second", value: "N",
        "With --recursive: process at most N bytes per second on average. N may end with K, M or G.")

    static let all = [
        recursive, jobs, name, filesFrom, shard, shards, report, resume, maxOpen, nice, bytesPerSecond,
        FileLimits.memory, FileLimits.time,
    ]

    /// The options that do not affect what is done to a file.
    static let withoutEffectOnFiles = all + [.json, .progress, .lockTimeout, .busyTimeout]

    /// The help text that all commands with these options share.
    static let note =
        "With --recursive, the exit status is the number of databases that failed, or 63 if 63 or more failed. A "
        + "higher status means that the run as a whole failed or was interrupted. If a database fails, the others "
        + "are still processed. After an interruption, run the command again. Databases that an earlier "
        + "run processed are reported as already done. Symbolic links in the folder are not followed."

    /// Returns whether the command is to process a folder.
    ///
    /// - Throws: ``CommandFailure`` with the code `usage` if an option only makes sense with a folder.
    static func isFleet(_ invocation: Invocation) throws -> Bool {
        if invocation.has(recursive) { return true }
        if let path = invocation.operands.first, try FileSystem.status(path)?.isDirectory == true {
            throw CommandFailure(
                .badData, StoreError.Code.notAFile.rawValue, path: path, "this is a directory",
                advice: "pass the path of a database file, or use --\(recursive.name) to process every database in the "
                    + "directory")
        }
        if let option = all.first(where: invocation.has) {
            throw CommandFailure.usage("--\(option.name) requires --\(recursive.name)")
        }
        return false
    }

    static func jobs(_ invocation: Invocation) throws -> Int {
        guard let text = invocation[jobs] else { return min(64, ProcessInfo.processInfo.activeProcessorCount) }
        guard let count = Int(text), (1...64).contains(count) else {
            throw CommandFailure.usage("--\(jobs.name) must be a number from 1 to 64")
        }
        return count
    }

    static func names(_ invocation: Invocation, default usual: DatabaseSearch.Names) throws -> DatabaseSearch.Names {
        guard let pattern = invocation[name] else { return usual }
        guard !invocation.has(filesFrom) else {
            throw CommandFailure.usage("--\(name.name) and --\(filesFrom.name) cannot be used together")
        }
        return .matching(pattern)
    }

    /// Returns a number of bytes, for an option such as `50M`; `nil` if the option was not specified.
    static func bytesPerSecond(_ invocation: Invocation) throws -> Double? {
        guard let text = invocation[bytesPerSecond] else { return nil }
        let powers: [Character: Int] = ["K": 10, "M": 20, "G": 30]
        let power = text.last.flatMap { powers[$0] }
        guard let number = Int(power == nil ? text : String(text.dropLast())), (1...1 << 30).contains(number) else {
            throw CommandFailure.usage(
                "--\(bytesPerSecond.name) must be a number of bytes such as 50M, where K, M and G are powers of 1,024")
        }
        return Double(number) * Double(1 << (power ?? 0))
    }
}
