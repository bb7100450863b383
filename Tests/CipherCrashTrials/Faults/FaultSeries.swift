import Foundation

/// A scenario with one fault in one kind of call, at each point in turn.
struct FaultSeries {
    let trial: Trial
    let fault: Fault
    let call: String

    /// After how many seconds a run counts as hanging.
    private static let limit = 120
    /// The random part of the copy's name, which is always the same.
    private static let digits = "5a5a5a5a5a5a5a5a"

    /// Calls that neither the program's loader nor its standard output needs.
    private static let ofFilesAlone: Set<String> = [
        "pwrite64", "fsync", "fdatasync", "ftruncate", "fchmod", "fchown", "fsetxattr", "fremovexattr",
    ]

    /// Only calls on these files fail: the program's loader is not tested.
    ///
    /// strace cannot identify a copy without a name, so a call that is made only on files is watched for all files.
    private var watched: [String] {
        let folder = trial.worker.folder
        let copy = "\(trial.file)-upgrade-\(Self.digits)"
        if fault == .lost { return ["-P", copy] }
        if Self.ofFilesAlone.contains(call) { return [] }
        let besides =
            ["-wal", "-shm", "-journal", "-attempt", "-plaintext", "-plaintext-\(Self.digits)"]
            + ["-damaged", "-damaged-wal", "-damaged-journal"]
        return ([folder, trial.file, copy] + besides.map { trial.file + $0 }).flatMap { ["-P", $0] }
    }

    /// A point, and what the call returns there if that depends on the point.
    struct Point {
        let number: Int
        var result: Int?
    }

    /// All points at which the fault can occur; for memory, every Nth one.
    func points(step: Int) throws -> (all: Int, tried: [Point]) {
        let all: Int
        switch fault {
        case .size:
            // In KiB. No file that a run makes is larger than all the files with which it begins.
            all = (trial.start.files.values.reduce(0) { $0 + $1.bytes.count } + 1_023) / 1_024
        case .lost:
            all = try countCalls()
            let sizes = try Trace.calls(Strace.text(trial.worker.trace)).filter { $0.name == call }.map(\.result)
            return (all, zip(1..., sizes).map { Point(number: $0, result: $1) })
        case .memory, .lastingMemory: all = try countAllocations()
        default: all = try countCalls()
        }
        guard all > 0 else { return (0, []) }
        return (all, stride(from: 1, through: all, by: fault.isMemory ? step : 1).map { Point(number: $0) })
    }

    private func countCalls() throws -> Int {
        try trial.countCalls(watched + ["-e", "trace=\(call)"])
    }

    private func countAllocations() throws -> Int {
        try trial.lay()
        let output = try trial.worker.run(failing("0")).output
        let prefix = "allocations: "
        let line = output.split(separator: "\n").last { $0.hasPrefix(prefix) }
        return line.flatMap { Int($0.dropFirst(prefix.count)) } ?? 0
    }

    private func failing(_ allocation: String) -> Command {
        var command = trial.command
        command.environment["FAILING_ALLOCATION"] = allocation
        return command
    }

    /// Runs the operation on a fresh folder with the fault.
    func run(_ point: Point) throws -> Ending {
        try trial.lay()
        var command = self.command(point)
        command.seconds = Self.limit
        return try trial.worker.run(command)
    }

    private func command(_ point: Point) -> Command {
        switch fault {
        case .size:
            var command = trial.command
            // The shell's unit is half a KiB.
            let limited = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\""
            command.words = ["/bin/sh", "-c", limited, "sh", String(2 * point.number)] + command.words
            return command
        case .memory: return failing("\(point.number)")
        case .lastingMemory: return failing("\(point.number)+")
        case .short: return injecting("retval=0", point)
        case .lost: return injecting("retval=\(point.result ?? 0)", point)
        default: return injecting("error=\(fault.rawValue)", point)
        }
    }

    private func injecting(_ effect: String, _ point: Point) -> Command {
        Strace.injecting(effect, at: call, point.number, watched, trial.command)
    }
}
