internal import CipherErrors

/// The command-line tool, from its arguments to its exit code.
package enum Tool {
    /// Runs the tool and returns the exit code.
    static func run(_ arguments: [String]) -> Int32 {
        SignalWatch.ignoreBrokenOutputs()
        var status: ExitStatus
        do {
            status = try dispatch(arguments)
        } catch {
            status = report(error, asJSON: asksForJSON(arguments))
        }
        do {
            try Output.flush()
        } catch {
            let report = FailureReport(error)
            Output.complain(report.line)
            if status == .done, !Output.isReport { status = report.status }
        }
        return status.code
    }

    private static func dispatch(_ arguments: [String]) throws -> ExitStatus {
        guard let word = arguments.first else {
            try Output.text(HelpText.overview)
            throw CommandFailure.usage("no command was specified", advice: "run cipherstore help to list the commands")
        }
        guard !word.hasPrefix("-") else { return try runWithoutCommand(arguments) }
        let command = try Command.named(word)
        do {
            return try run(command, Array(arguments.dropFirst()))
        } catch let failure as CommandFailure {
            throw failure.pointing(to: "cipherstore \(command.name) --help")
        }
    }

    private static func runWithoutCommand(_ arguments: [String]) throws -> ExitStatus {
        if let command = arguments.first(where: { word in Command.all.contains { $0.name == word } }) {
            throw CommandFailure.usage(
                "the command must come before its options",
                advice: "write cipherstore \(command), followed by the options")
        }
        let invocation = try ArgumentParser.parse(arguments, [.help, .version, .json])
        if invocation.has(.help) {
            try Output.text(HelpText.overview)
        } else if invocation.has(.version) {
            try Output.text(HelpText.version)
        } else {
            throw CommandFailure.usage("no command was specified", advice: "see cipherstore --help")
        }
        return .done
    }

    private static func run(_ command: Command, _ arguments: [String]) throws -> ExitStatus {
        var invocation = try ArgumentParser.parse(arguments, command.allOptions)
        if invocation.has(.help) {
            try Output.text(HelpText.command(command))
            return .done
        }
        let expected = command.operands
        let most = expected.last?.isRepeatable == true ? Int.max : expected.count
        guard (expected.count { !$0.isOptional }...most).contains(invocation.operands.count) else {
            throw unexpectedOperands(command, invocation.operands.count)
        }
        for (index, operand) in zip(invocation.operands.indices, expected) {
            if operand.kind.namesFile {
                try KeyOptions.refuseKey(invocation.operands[index], as: "the argument \(operand.name)", "a path")
            } else {
                invocation.operands[index] = try ArgumentParser.text(invocation.operands[index], of: operand.name)
            }
        }
        if let missing = command.options.first(where: { $0.isRequired && !invocation.has($0) }) {
            let isConfiguration = missing.name == ConfigurationOptions.configuration.name
            throw CommandFailure(
                .usage, "usage", path: invocation.operands.first, "\(missing.usage) is required",
                advice: isConfiguration
                    ? "pass the app's configuration with --config and the database's folder with --directory; if "
                        + "the app has no configuration, run cipherstore encrypt" : "")
        }
        if command.isToldByStatus { Output.beginReport() }
        return try command.run(invocation)
    }

    private static func unexpectedOperands(_ command: Command, _ count: Int) -> CommandFailure {
        let expected = command.operands
        let names =
            expected.isEmpty
            ? "no arguments"
            : "the argument\(expected.count == 1 ? "" : "s") " + expected.map(\.usage).joined(separator: " ")
        let given = count == 0 ? "none was" : count == 1 ? "1 was" : "\(count) were"
        let message = "\(command.name) takes \(names), but \(given) specified"
        let takesFolder = command.options.contains { $0.name == FleetOptions.recursive.name }
        return .usage(
            message,
            advice: takesFolder && count > expected.count
                ? "to process several databases, put them in a folder and run cipherstore \(command.name) DIR "
                    + "--recursive; keys are specified with options such as --key-file" : "")
    }

    private static func report(_ error: any Error, asJSON: Bool) -> ExitStatus {
        let report = FailureReport(error)
        guard !ThisProcess.isWorker else {
            FleetChannel(1).send(FleetAnswer.unable(report))
            return report.status
        }
        Output.complain(report.line)
        // If another JSON object was already begun, this one would only corrupt it.
        if asJSON, !Output.hasBegun {
            do {
                try Output.json(["error": report])
            } catch {
                Output.complain("the error could not be written as JSON")
            }
        }
        if let error = error as? StoreError, error.code == .cancelled, let signal = SignalWatch.received {
            return .signal(signal)
        }
        return report.status
    }

    private static func asksForJSON(_ arguments: [String]) -> Bool {
        arguments.prefix { $0 != "--" }.contains("--json")
    }
}
