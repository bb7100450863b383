extension Shard {
    /// Returns the shard that the options specify or, if they specify none, the one that a scheduler set in the
    /// environment.
    ///
    /// - Throws: ``CommandFailure`` with the code `usage` if the shard cannot be determined.
    static func asked(_ invocation: Invocation, _ environment: [String: String]) throws -> Shard {
        if let text = invocation[FleetOptions.shard] {
            guard !invocation.has(FleetOptions.shards) else {
                throw CommandFailure.usage("--shard and --shards cannot be used together")
            }
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, let index = Int(parts[0]), let count = Int(parts[1]) else {
                throw CommandFailure.usage("--shard must have the form K/N, such as 0/8")
            }
            return try Shard(index: index, of: count, origin: "--shard")
        }
        let count = try invocation.count(FleetOptions.shards, default: 0)
        for variable in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"] {
            guard let index = try number(variable, environment) else { continue }
            if count > 0 { return try Shard(index: index, of: count, origin: "\(variable) and --shards") }
            guard variable == "SLURM_ARRAY_TASK_ID" else {
                throw CommandFailure.usage(
                    "\(variable) is set, but the number of shards is unknown",
                    advice: "specify the job's number of completions with --shards N, or process all files with "
                        + "--shard 0/1")
            }
            return try inArray(index, environment)
        }
        guard count == 0 else {
            throw CommandFailure.usage(
                "--shards requires SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX, and neither is set",
                advice: "specify the shard with --shard K/N")
        }
        return .whole
    }

    /// Returns the shard of a task in a Slurm array.
    ///
    /// Source: sbatch(1), "OUTPUT ENVIRONMENT VARIABLES".
    private static func inArray(_ index: Int, _ environment: [String: String]) throws -> Shard {
        let names = ["SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT"]
        let numbers = try names.compactMap { try number($0, environment) }
        guard numbers.count == 3 else {
            throw CommandFailure.usage(
                "SLURM_ARRAY_TASK_ID is set, but at least one of \(names.joined(separator: ", ")) is missing",
                advice: "specify the shard with --shard K/N")
        }
        // In a part of an array, the same numbers would refer to different shards than in the whole array.
        guard numbers[1] - numbers[0] + 1 == numbers[2] else {
            throw CommandFailure.usage(
                "the task numbers of the Slurm array have gaps, so the shard cannot be determined",
                advice: "specify the shard with --shard K/N, and use the same N as in the first run")
        }
        return try Shard(index: index - numbers[0], of: numbers[2], origin: "SLURM_ARRAY_TASK_ID")
    }

    private static func number(_ variable: String, _ environment: [String: String]) throws -> Int? {
        guard let text = environment[variable] else { return nil }
        guard let number = Int(text), (0...Int(Int32.max)).contains(number) else {
            throw CommandFailure.usage("\(variable) is not a number", advice: "specify the shard with --shard K/N")
        }
        return number
    }
}
