/// The completions for bash, which need nothing but bash itself, version 4 or later.
enum BashCompletions {
    static var script: String {
        """
        # The bash completions for cipherstore. `cipherstore completions bash` prints them.

        # Proposes completions for a kind of word: one of the kinds below, or a list of words separated by commas.
        _cipherstore_propose() {
            case $1 in
                text) ;;
                file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
                directory) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
                variable) mapfile -t COMPREPLY < <(compgen -A export -- "$word") ;;
                *) mapfile -t COMPREPLY < <(compgen -W "${1//,/ }" -- "$word") ;;
            esac
        }

        _cipherstore() {
            local word=$2 before=$3 index given option options kind names=''
            local -a operands
            COMPREPLY=()
            if ((COMP_CWORD == 1)); then
                _cipherstore_propose \((Command.all.map(\.name) + ["--help", "--version"]).joined(separator: ","))
                return
            fi
            # For each command: the kinds of its operands, and its options with the kinds of their values.
            case ${COMP_WORDS[1]} in
        \(Command.all.map(description).joined(separator: "\n"))
                *) return ;;
            esac

            # bash splits --option=value into three words.
            if [[ $word == "=" ]]; then word=''; fi
            if [[ $before == "=" ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
            if [[ $options == *" $before="* ]]; then
                kind=${options#*" $before="}
                _cipherstore_propose "${kind%% *}"
                return
            fi

            for ((index = 2; index < COMP_CWORD; index++)); do
                given=${COMP_WORDS[index]}
                if [[ $given != -* ]]; then
                    # An operand whose kind ends with "..." may be repeated.
                    if [[ ${operands[0]} != *... ]]; then operands=("${operands[@]:1}"); fi
                    continue
                fi
                if [[ ${COMP_WORDS[index + 1]} == "=" ]]; then ((index += 2))
                elif [[ $options == *" $given="* ]]; then ((++index)); fi
                # Do not propose an option that is already on the command line.
                for option in $options; do
                    if [[ ${option%%=*} == "$given" ]]; then options=${options/" $option "/ }; fi
                done
            done
            if [[ $word == -* ]]; then
                for option in $options; do names+=${option%%=*},; done
                _cipherstore_propose "$names"
            elif ((${#operands[@]} > 0)); then
                _cipherstore_propose "${operands[0]%...}"
            fi
        }

        complete -F _cipherstore cipherstore

        """
    }

    private static func description(_ command: Command) -> String {
        let options = command.allOptions.map { option in
            "--\(option.name)" + (option.value == nil ? "" : "=" + word(option.kind))
        }
        let operands = command.operands.map { word($0.kind) + ($0.isRepeatable ? "..." : "") }
        return "        \(command.name)) operands=(\(operands.joined(separator: " "))) "
            + "options=' \(options.joined(separator: " ")) ' ;;"
    }

    private static func word(_ kind: ArgumentKind) -> String {
        switch kind {
        case .text, .pattern: "text"
        case .file: "file"
        case .directory: "directory"
        case .variable: "variable"
        case .words(let words): words.joined(separator: ",")
        }
    }
}
