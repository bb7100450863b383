internal import CCipherSystem
internal import CipherErrors

/// How this process was started.
enum ThisProcess {
    /// The first argument of a process that a run starts to work on its files.
    static let workerWord = "fleet-worker"

    /// The arguments after the program's name.
    ///
    /// `CommandLine.arguments` replaces bytes that are not UTF-8, and would then name another file.
    static let arguments = (1..<max(1, Int(CommandLine.argc))).compactMap {
        CommandLine.unsafeArgv[$0].map { SystemPath.text(cString: $0) }
    }

    /// Whether a run started this process to work on its files, with a socket as its standard output.
    static let isWorker = arguments.first == workerWord && cs_is_socket(1) != 0

    /// The command and its arguments, which are the same in a run and in its workers.
    static let commandLine = isWorker ? Array(arguments.dropFirst()) : arguments
}
