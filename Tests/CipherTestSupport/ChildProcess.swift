internal import CCipherSubjectShims
public import Foundation

/// A running program.
///
/// Foundation's `Process` waits in the run loop of the calling thread, and watches all processes on one other thread. A
/// test that runs among hundreds waits for its own child instead. A program that is let go is killed.
public final class ChildProcess {
    /// How a program ended.
    public struct Ending: Sendable {
        /// The exit status, or the number of the signal.
        public let status: Int32
        /// Whether a signal ended it.
        public let wasKilled: Bool
    }

    /// The process ID.
    public let identifier: Int32
    private var ending: Ending?

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - environment: Variables in addition to those of this process.
    ///   - folder: The current folder of the program; by default, that of this process.
    ///   - input: A file or pipe; by default, the null device. This also applies to the outputs.
    public init(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], in folder: String = ".",
        input: FileHandle? = nil, output: FileHandle? = nil, errors: FileHandle? = nil
    ) throws {
        let streams = [input, output, errors].map { $0?.fileDescriptor ?? -1 }
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        // The program is found from its own folder otherwise.
        let path = URL(filePath: program).absoluteURL.path(percentEncoded: false)
        func copies(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }
        let (all, values) = (copies([program] + arguments), copies(variables))
        defer { for text in all + values { free(text) } }
        var process: pid_t = 0
        let result = sp_spawn(&process, path, all, values, folder, streams)
        guard result == 0 else { throw POSIXError(POSIXErrorCode(rawValue: result) ?? .EIO) }
        identifier = process
    }

    deinit {
        guard ending == nil else { return }
        // Swift Testing waits for any child, and would always find the one that nobody has waited for.
        _ = kill(identifier, SIGKILL)
        _ = wait()
    }

    /// Whether the program has not ended yet.
    public var isRunning: Bool { ending == nil && sp_is_running(identifier) != 0 }

    /// Waits until the program has ended.
    public func wait() -> Ending {
        if let ending { return ending }
        var (status, wasKilled): (Int32, Int32) = (-1, 0)
        sp_wait(identifier, &status, &wasKilled)
        let ending = Ending(status: status, wasKilled: wasKilled != 0)
        self.ending = ending
        return ending
    }
}
