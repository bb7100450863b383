import Foundation

/// A program in a separate process, for tests of locks, crashes and races.
public struct TestProgram: Sendable {
    /// The executable.
    public let path: String

    /// A system program.
    public init(path: String) {
        self.path = path
    }

    /// A product of this package, which is built in the same folder as the tests.
    public static func built(_ name: String) -> TestProgram {
        TestProgram(
            path: URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: name)
                .path(percentEncoded: false))
    }

    /// strace, if it is installed.
    public static let strace = TestProgram(path: "/usr/bin/strace")

    /// The name that Linux gives to its process: the first 15 bytes of the file's name.
    public var processName: String {
        String(decoding: URL(filePath: path).lastPathComponent.utf8.prefix(15), as: UTF8.self)
    }

    /// Whether the program can be run.
    public var isThere: Bool { FileManager.default.isExecutableFile(atPath: path) }

    /// How a run ended.
    public struct Ending: Sendable {
        /// The standard output, without surrounding white space.
        public let output: String
        /// The standard error, without surrounding white space.
        public let errors: String
        /// Its exit status, or the number of the signal.
        public let status: Int32
        /// Whether a signal ended it.
        public let wasKilled: Bool
    }

    /// Starts the program, and returns at once.
    ///
    /// - Returns: The run, with which the test can wait for the end.
    public func start(_ arguments: [String]) throws -> Running {
        let (input, output, errors) = (Pipe(), Pipe(), Pipe())
        let process = try ChildProcess(
            path, arguments, input: input.fileHandleForReading, output: output.fileHandleForWriting,
            errors: errors.fileHandleForWriting)
        // These ends are the program's own, so that its outputs end with it.
        try input.fileHandleForReading.close()
        for pipe in [output, errors] { try pipe.fileHandleForWriting.close() }
        return Running(process: process, input: input, output: output, errors: errors)
    }

    /// Runs the program to its end.
    public func run(_ arguments: [String]) throws -> Ending { try start(arguments).wait() }

    /// A run that may not have ended yet.
    public struct Running {
        fileprivate let process: ChildProcess
        fileprivate let input: Pipe
        fileprivate let output: Pipe
        fileprivate let errors: Pipe

        /// The process ID.
        public var processID: Int32 { process.identifier }

        /// Ends the process as a crash would.
        public func kill() { _ = Foundation.kill(process.identifier, SIGKILL) }

        /// Reads a line of its output.
        public func line() throws -> String {
            var bytes: [UInt8] = []
            while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") {
                bytes.append(byte)
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// Writes a line to its input.
        public func tell(_ line: String) throws {
            try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
        }

        /// Writes a line to its input, and reads the answer.
        public func ask(_ line: String) throws -> String {
            try tell(line)
            return try self.line()
        }

        /// Closes its input and waits for its end.
        ///
        /// The program must not write more to standard error than a pipe can contain.
        public func wait() throws -> Ending {
            func text(_ pipe: Pipe) throws -> String {
                String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
                    .trimmingCharacters(in: .whitespacesAndNewlines)
            }
            try input.fileHandleForWriting.close()
            let (said, complained) = (try text(output), try text(errors))
            let ending = process.wait()
            return Ending(
                output: said, errors: complained, status: ending.status, wasKilled: ending.wasKilled)
        }
    }
}
