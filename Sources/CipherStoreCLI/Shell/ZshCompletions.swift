/// The completions for zsh, which use its own `_arguments`.
enum ZshCompletions {
    static var script: String {
        """
        #compdef cipherstore
        # The zsh completions for cipherstore. `cipherstore completions zsh` prints them.

        _cipherstore_commands() {
            local -a group
        \(Command.groups.map(group).joined(separator: "\n"))
        }

        _cipherstore() {
            local curcontext=$curcontext context state line
            typeset -A opt_args
            _arguments -C \\
                \(quoted("(- *)" + specification(.help))) \\
                \(quoted("(- *)" + specification(.version))) \\
                '1: :_cipherstore_commands' \\
                '*:: :->arguments' && return
            [[ $state == arguments ]] || return
            case $words[1] in
        \(Command.all.map(command).joined(separator: "\n"))
            esac
        }

        # zsh loads this file from fpath as a function, or the user sources it.
        if [[ $funcstack[1] == _cipherstore ]]; then
            _cipherstore "$@"
        else
            compdef _cipherstore cipherstore
        fi

        """
    }

    private static func group(_ group: Command.Group) -> String {
        let entries = group.commands.map { quoted($0.name + ":" + escaped($0.summary, [":"])) }
        let list = entries.map { "        \($0)" }.joined(separator: "\n")
        return "    group=(\n\(list)\n    )\n    _describe -t commands \(quoted(group.title)) group"
    }

    private static func command(_ command: Command) -> String {
        let options = command.allOptions.map { option in
            // No other argument goes with --help.
            quoted(
                (option.name == Option.help.name ? "(- *)" : option.isRepeatable ? "*" : "") + specification(option))
        }
        let operands = command.operands.enumerated().map { index, operand in
            quoted("\(operand.isRepeatable ? "*" : "\(index + 1)"):\(operand.name):\(action(operand.kind))")
        }
        let lines = (options + operands).joined(separator: " \\\n                ")
        return "        \(command.name))\n            _arguments \\\n                \(lines) ;;"
    }

    private static func specification(_ option: Option) -> String {
        let help = escaped(option.help, ["[", "]"])
        guard let value = option.value else { return "--\(option.name)[\(help)]" }
        return "--\(option.name)=[\(help)]:\(value):\(action(option.kind))"
    }

    private static func action(_ kind: ArgumentKind) -> String {
        switch kind {
        case .text, .pattern: " "
        case .file: "_files"
        case .directory: "_files -/"
        case .variable: "_parameters -g \"*export*\""
        case .words(let words): "(\(words.joined(separator: " ")))"
        }
    }

    private static func escaped(_ text: String, _ characters: Set<Character>) -> String {
        String(text.flatMap { characters.contains($0) || $0 == "\\" ? ["\\", $0] : [$0] })
    }

    private static func quoted(_ text: String) -> String {
        let inner = text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#)
        return "'\(inner)'"
    }
}
