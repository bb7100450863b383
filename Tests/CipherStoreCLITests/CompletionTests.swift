internal import CipherStoreCLI
import CipherTestSupport
import Foundation
import Testing

/// The completions that the shells themselves propose.
@Suite struct CompletionTests {
    /// A command line up to the cursor, and what must and must not be proposed there.
    struct Line: Sendable, CustomTestStringConvertible {
        let words: [String]
        let proposes: [String]
        var hides: [String] = []

        var testDescription: String { words.joined(separator: " ") }
    }

    static let lines = [
        Line(words: [""], proposes: Command.all.map(\.name)),
        Line(words: ["en"], proposes: ["encrypt"], hides: ["inspect"]),
        Line(words: ["encrypt", "--"], proposes: ["--key-file", "--keep-backup", "--json"], hides: ["--csv"]),
        Line(words: ["rekey", "--new"], proposes: ["--new-key-file", "--new-key-env"], hides: ["--key-file"]),
        Line(words: ["encrypt", "--json", "--"], proposes: ["--key-file"], hides: ["--json"]),
        Line(words: ["encrypt", "--key-file", "key", "--k"], proposes: ["--keep-backup"], hides: ["--key-file"]),
        Line(words: ["encrypt", "--progress", ""], proposes: ["auto", "always", "never"], hides: ["--json"]),
        Line(words: ["encrypt", "--cipher-compatibility", ""], proposes: ["3", "4"], hides: ["2"]),
        Line(words: ["encrypt", "--key-file", ""], proposes: ["a db", "key"]),
        Line(words: ["encrypt", "--key-env", "SHOWN_"], proposes: ["SHOWN_KEY"]),
        Line(words: ["encrypt", "--key-file", "key", ""], proposes: ["a db"]),
        Line(words: ["migrate", "--directory", ""], proposes: ["folder"], hides: ["key"]),
        Line(words: ["query", "key", ""], proposes: [], hides: ["key", "--json"]),
        Line(words: ["completions", ""], proposes: ["bash", "zsh"], hides: ["key"]),
    ]

    @Test("bash proposes what is allowed at the cursor, and nothing else", arguments: lines)
    func bash(_ line: Line) throws {
        try check(line, in: "bash", script: Self.bash)
    }

    @Test("bash also completes after an equals sign")
    func bashCompletesBehindAnEqualsSign() throws {
        let line = Line(words: ["encrypt", "--progress", "=", "al"], proposes: ["always"], hides: ["auto"])
        try check(line, in: "bash", script: Self.bash)
        let next = Line(
            words: ["encrypt", "--key-file", "=", "key", "--"], proposes: ["--json"], hides: ["--key-file"])
        try check(next, in: "bash", script: Self.bash)
    }

    @Test(
        "zsh proposes what is allowed at the cursor, and nothing else",
        .enabled("zsh is not installed") { Shells.have("zsh") }, arguments: lines)
    func zsh(_ line: Line) throws {
        try check(line, in: "zsh", script: Self.zsh)
    }

    private func check(_ line: Line, in shell: String, script: String) throws {
        let fixture = try ToolFixture()
        try fixture.folder.write("", to: "key")
        try fixture.folder.write("", to: "a db")
        try FileManager.default.createDirectory(
            at: fixture.folder.url.appending(path: "folder"), withIntermediateDirectories: false)
        let completions = try fixture.run("completions", shell)
        #expect(completions.status == 0)
        let file = try fixture.keys.write(completions.output, to: "_cipherstore")
        let program = try #require(Shells.path(shell))
        let options = shell == "zsh" ? ["-f"] : ["--norc", "--noprofile"]
        let run = try ToolRun.run(
            program, options + ["-c", script, shell, file] + line.words,
            environment: ["SHOWN_KEY": "1", "TERM": "dumb", "ZDOTDIR": fixture.keys.path("")],
            in: fixture.folder.path(""))
        let proposed = Set(run.output.split(whereSeparator: \.isNewline).map(String.init))
        #expect(run.errors.isEmpty)
        #expect(proposed.isSuperset(of: line.proposes), "\(proposed)")
        #expect(proposed.isDisjoint(with: line.hides), "\(proposed)")
    }

    /// Calls the function as bash does; `compopt` works only within readline.
    private static let bash = """
        . "$1"; shift
        compopt() { :; }
        COMP_WORDS=(cipherstore "$@") COMP_CWORD=$#
        _cipherstore cipherstore "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        if ((${#COMPREPLY[@]} > 0)); then printf '%s\\n' "${COMPREPLY[@]}"; fi
        """

    /// Presses the Tab key in a shell on a separate terminal, and records every match that is added.
    private static let zsh = """
        file=$1; shift
        export MATCHES=${file:h}/matches LINE="cipherstore ${(j: :)@}"
        cat >${file:h}/.zshrc <<'END'
        autoload -Uz compinit && compinit -u -D
        source ${MATCHES:h}/_cipherstore
        compadd() {
            local -a found
            if [[ ${@[(I)-[AOD]]} == 0 ]]; then
                builtin compadd -A found "$@"
                print -rl -- ${(Q)found} >>$MATCHES
            fi
            builtin compadd "$@"
        }
        propose() { BUFFER=$LINE CURSOR=$#LINE; zle complete-word; exit }
        zle -N propose
        zle-line-init() { zle propose }
        zle -N zle-line-init
        END
        zmodload zsh/zpty
        zpty shell ZDOTDIR=${file:h} zsh -i
        while zpty -r shell text; do :; done
        touch $MATCHES
        cat $MATCHES
        """
}

/// The shells of this machine.
enum Shells {
    static func path(_ name: String) -> String? {
        ["/bin/", "/usr/bin/", "/usr/local/bin/"].map { $0 + name }.first(where: FileManager.default.isExecutableFile)
    }

    static func have(_ name: String) -> Bool { path(name) != nil }
}
