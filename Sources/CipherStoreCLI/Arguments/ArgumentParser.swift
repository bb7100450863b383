internal import CCipherSystem
internal import CipherConfigurationText
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// Parses a command line against a list of options, with the C library's `getopt_long`.
///
/// Operands may come before, between and after options; after `--` everything is an operand.
package enum ArgumentParser {
    /// Parses the arguments after the command's name.
    ///
    /// - Throws: ``CommandFailure`` with the code `usage`. The message names options, never their values or operands,
    ///   because those may be secrets in the wrong place.
    package static func parse(_ arguments: [String], _ options: [Option]) throws -> Invocation {
        try turn.withLock { try read(arguments, options) }
    }

    // getopt keeps its position in global variables.
    private static let turn = Lock()

    private static func read(_ arguments: [String], _ options: [Option]) throws -> Invocation {
        // getopt expects the program's name as the first word.
        var argv: [UnsafeMutablePointer<CChar>?] = (["cipherstore"] + arguments).map {
            $0.withSystemPath { strdup($0) }
        }
        var table = options.enumerated().map { index, option in
            CCipherSystem.option(
                name: strdup(option.name), has_arg: option.value == nil ? no_argument : required_argument, flag: nil,
                val: CS_OPTION_BASE + Int32(index))
        }
        let words = argv
        defer {
            for word in words { free(word) }
            for entry in table { free(UnsafeMutableRawPointer(mutating: entry.name)) }
        }
        let count = Int32(argv.count)
        argv.append(nil)
        table.append(CCipherSystem.option(name: nil, has_arg: 0, flag: nil, val: 0))

        var values: [String: [String]] = [:]
        var operands: [String] = []
        cs_arguments_begin()
        while true {
            let found = cs_arguments_next(count, &argv, table)
            switch found.kind {
            case CS_ARGUMENT_OPTION:
                let option = options[Int(found.index)]
                let value = found.text.map { SystemPath.text(cString: $0) } ?? ""
                // An unset shell variable gives an empty value, which no option accepts.
                guard option.value == nil || !value.isEmpty else { throw valueMissing(option) }
                let given = try option.kind.namesFile ? value : text(value, of: option.usage)
                values[option.name, default: []].append(given)
                guard option.isRepeatable || values[option.name]?.count == 1 else {
                    throw CommandFailure.usage("--\(option.name) was specified twice")
                }
            case CS_ARGUMENT_OPERAND:
                if let text = found.text { operands.append(SystemPath.text(cString: text)) }
            case CS_ARGUMENT_UNKNOWN where found.letter == Int32(UInt8(ascii: "h")) && offersHelp(options):
                values[Option.help.name] = [""]
            case CS_ARGUMENT_END:
                // getopt has not reordered anything, so the arguments after `--` are in their original places.
                operands += arguments.dropFirst(Int(found.rest) - 1)
                return Invocation(values: values, operands: operands)
            default:
                throw failure(found, options)
            }
        }
    }

    private static func offersHelp(_ options: [Option]) -> Bool {
        options.contains { $0.name == Option.help.name }
    }

    /// Returns an argument as text; it must not be a file name, which need not be UTF-8.
    static func text(_ argument: String, of usage: String) throws -> String {
        let bytes = SystemPath.bytes(argument)
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.utf8.elementsEqual(bytes) else {
            throw CommandFailure.usage("\(usage): the value is not valid UTF-8")
        }
        return text
    }

    private static func failure(_ found: cs_argument, _ options: [Option]) -> CommandFailure {
        switch found.kind {
        case CS_ARGUMENT_VALUE_MISSING:
            return valueMissing(options[Int(found.index)])
        case CS_ARGUMENT_VALUE_UNWANTED:
            return .usage("--\(options[Int(found.index)].name) takes no value")
        default:
            guard let text = found.text else {
                let letter = String(UnicodeScalar(UInt8(truncatingIfNeeded: found.letter)))
                return .usage(
                    "unknown option -\(letter)",
                    advice: "use a long option such as --key-file; -h is the only short option")
            }
            let name = SystemPath.text(cString: text).drop { $0 == "-" }.prefix { $0 != "=" }
            return unknown(String(name), options)
        }
    }

    private static func valueMissing(_ option: Option) -> CommandFailure {
        .usage("\(option.usage): the value is missing or empty")
    }

    private static func unknown(_ name: String, _ options: [Option]) -> CommandFailure {
        let meant = options.map(\.name).filter { $0.hasPrefix(name) }
        let keys = options.map(\.name).filter { $0.hasPrefix("key-") }
        if ["key", "password", "passphrase"].contains(name), !keys.isEmpty {
            return .usage(
                "there is no option --\(name), because other users could read the key in the process list",
                advice: "specify the key with one of these options: "
                    + "\(keys.map { "--\($0)" }.joined(separator: ", ")); if you typed a database key on the "
                    + "command line, it may be in your shell history: change the key with cipherstore rekey")
        }
        if meant.count > 1 {
            let names = meant.map { "--\($0)" }.joined(separator: ", ")
            return .usage("--\(name) is ambiguous", advice: "did you mean one of \(names)?")
        }
        let suggestion = Suggestion.nearest(to: name, among: options.map(\.name))
        return .usage("unknown option --\(name)", advice: suggestion.map { "did you mean --\($0)?" } ?? "")
    }
}
