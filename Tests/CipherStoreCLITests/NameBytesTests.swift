import CipherTestSupport
import Foundation
import Testing

/// Files whose names are not UTF-8, in the folder `x\xff`.
///
/// The folder `x\u{FFFD}` beside it contains another database, which no command may touch.
@Suite struct NameBytesTests {
    private let tool: ToolFixture
    private let sibling: FolderDigest
    private static let names = "B=$(printf 'x\\377'); R=$(printf 'x\\357\\277\\275'); T=$1; K=$2; O=$3; C=$4; "

    init() throws {
        tool = try ToolFixture()
        try tool.make("mine", "CREATE TABLE note(id INTEGER PRIMARY KEY, body); INSERT INTO note VALUES (1, 'mine')")
        try tool.make(
            "sibling", "CREATE TABLE note(id INTEGER PRIMARY KEY, body); INSERT INTO note VALUES (1, 'other')")
        let script = "mkdir \"$B\" \"$R\" && mv mine \"$B/app.db\" && mv sibling \"$R/app.db\""
        let made = try tool.run(shell: Self.names + script, [])
        try #require(made.status == 0, "\(made.errors)")
        sibling = try FolderDigest(tool.folder.url.appending(path: "x\u{FFFD}"))
    }

    /// Runs a script that gets the two folders, the tool, two keys and a configuration.
    private func shell(_ script: String) throws -> ToolRun {
        try tool.run(shell: Self.names + script, [tool.key, tool.otherKey, try tool.configuration()])
    }

    private func expectSiblingUntouched() throws {
        #expect(try FolderDigest(tool.folder.url.appending(path: "x\u{FFFD}")) == sibling)
    }

    @Test("Commands on a name that is not UTF-8 do not touch a file with a similar name")
    func commands() throws {
        let encrypted = try shell("\"$T\" encrypt \"$B/app.db\" --key-file \"$K\" && head -c 6 \"$B/app.db\"")
        #expect(encrypted.status == 0, "\(encrypted.errors)")
        #expect(encrypted.output.contains("x\\xff/app.db"))
        #expect(!encrypted.output.hasSuffix("SQLite"))
        try expectSiblingUntouched()
        let sql = "'SELECT body FROM note' --csv"
        let scripts = [
            "\"$T\" inspect \"$B/app.db\" --key-file \"$K\" | grep encrypted",
            "\"$T\" verify \"$B/app.db\" --key-file \"$K\"",
            "\"$T\" query \"$B/app.db\" --key-file \"$K\" \(sql) | grep mine",
            "\"$T\" rekey \"$B/app.db\" --key-file \"$K\" --new-key-file \"$O\"",
            "\"$T\" query \"$B/app.db\" --key-file \"$O\" \(sql) | grep mine",
            "\"$T\" decrypt \"$B/app.db\" --key-file \"$O\"",
            "\"$T\" query \"$B/app.db\" \(sql) | grep mine",
        ]
        for script in scripts {
            let run = try shell(script)
            #expect(run.status == 0, "\(script): \(run.errors)")
            try expectSiblingUntouched()
        }
    }

    @Test("The folders of the database and of the configuration are identified by their bytes")
    func configured() throws {
        let run = try shell(
            "cp \"$C\" \"$B/config.json\"; \"$T\" migrate --config \"$B/config.json\" --directory \"$B\" --key-file \"$K\""
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.output.contains("x\\xff/app.db"))
        #expect(try shell("\"$T\" plan --config \"$C\" --directory \"$B\" --key-file \"$K\"").status == 0)
        try expectSiblingUntouched()
        let all = try shell("\"$T\" migrate \"$B\" --recursive --config \"$C\" --key-file \"$K\"")
        #expect(all.status == 0, "\(all.errors)")
        try expectSiblingUntouched()
    }

    @Test("A key file is created, found and derived from a template by its bytes")
    func keys() throws {
        #expect(try shell("\"$T\" keygen \"$B/key\" && test -f \"$B/key\"").status == 0)
        let run = try shell("\"$T\" encrypt \"$B/app.db\" --key-file \"$B/key\" --json")
        #expect(run.status == 0, "\(run.errors)")
        #expect((try run.object()["path"] as? String)?.hasSuffix("/x\\xff/app.db") == true)
        try expectSiblingUntouched()
        let template = try shell(
            "mkdir keys; cp \"$K\" \"keys/$R\"; cp \"$B/key\" \"keys/$B\"; \"$T\" verify \"$B/app.db\" --key-file 'keys/{folder}'"
        )
        #expect(template.status == 0, "\(template.errors)")
    }

    @Test("A run on a folder finds every name, and reports each under its own name")
    func recursive() throws {
        let run = try shell("cp \"$B/app.db\" \"$B.db\"; \"$T\" encrypt . --recursive --json --key-file \"$K\"")
        #expect(run.status == 0, "\(run.errors)")
        let lines = try FleetLines(run)
        #expect(lines.summary["done"] == 3)
        #expect(
            lines.outcomes == ["x\\xff.db": "encrypted", "x\\xff/app.db": "encrypted", "x\u{FFFD}/app.db": "encrypted"])
        let named = try FleetLines(
            try shell("\"$T\" verify . --recursive --json --key-file \"$K\" --name \"$B.d?\""))
        #expect(named.outcomes == ["x\\xff.db": "sound"])
    }

    @Test("An error names the file by its bytes")
    func failure() throws {
        let run = try shell("\"$T\" verify \"$B/none.db\" --json")
        #expect(run.status == 66)
        #expect(run.errors.contains("x\\xff/none.db: there is no such file"))
        #expect(try run.failureCode() == "missingFile")
    }

    @Test("SQL that is not UTF-8 is refused, not repaired")
    func sql() throws {
        let run = try shell("\"$T\" query \"$B/app.db\" \"SELECT '$B'\"")
        #expect(run.status == 64)
        #expect(run.errors.contains("not valid UTF-8"))
    }
}
