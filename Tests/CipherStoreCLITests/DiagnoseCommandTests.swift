internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// `diagnose`: the causes with the options that open the file, and the exit status.
@Suite struct DiagnoseCommandTests {
    private struct Case: Sendable {
        let kind: String?
        let status: Int32
        let make: @Sendable (ToolFixture) throws -> Void
    }

    private static let cases = [
        Case(kind: nil, status: 0) { try $0.make(encrypted: true) },
        Case(kind: "plaintext", status: 65) { try $0.make() },
        Case(kind: "undetermined", status: 65) { fixture in
            try fixture.make(encrypted: true)
            try fixture.keys.write("x'\(ToolFixture.otherRawKey)'", to: "key")
        },
        Case(kind: "rawKeyNotPassphrase", status: 65) { fixture in
            try fixture.make(encrypted: true)
            try fixture.keys.write(ToolFixture.rawKey, to: "key")
        },
        Case(kind: "byteOrderMark", status: 65) { fixture in
            try fixture.make(encrypted: true)
            try fixture.keys.write("\u{feff}x'\(ToolFixture.rawKey)'", to: "key")
        },
        Case(kind: "hotJournal", status: 75) { try $0.makeWithHotJournal(encrypted: true) },
        Case(kind: "notADatabase", status: 65) { try $0.folder.write("Dear diary, nothing today.\n", to: "app.db") },
        Case(kind: "notAFile", status: 65) {
            try FileManager.default.createDirectory(atPath: $0.database, withIntermediateDirectories: false)
        },
    ]

    @Test("diagnose reports each cause with its exit status, as text and as JSON, and changes nothing")
    func causes() throws {
        for test in Self.cases {
            let fixture = try ToolFixture()
            try test.make(fixture)
            let before = try fixture.snapshot()
            let arguments = ["diagnose", fixture.database, "--key-file", fixture.key, "--max-rounds", "100"]
            let text = try fixture.run(arguments)
            #expect(text.status == test.status, "\(text.output)\(text.errors)")
            #expect(text.output.contains(test.kind ?? "with the specified key and format"), "\(text.output)")
            let json = try fixture.run(arguments + ["--json", "--max-derivations", "5"])
            #expect(json.status == test.status)
            let causes = try #require(try json.object()["causes"] as? [[String: Any]])
            #expect(causes.map { $0["kind"] as? String } == (test.kind.map { [$0] } ?? []))
            #expect(try fixture.snapshot() == before)
        }
    }

    @Test("The option that diagnose prints opens the file")
    func option() throws {
        let fixture = try ToolFixture()
        let settings = CipherSettings(compatibility: 3, pageSize: 4096, kdfIterations: 1_234)
        try fixture.make(encrypted: true, settings: settings)
        let run = try fixture.run("diagnose", fixture.database, "--key-file", fixture.key, "--json")
        let option = try #require(try run.object()["option"] as? String)
        let words = option.split(separator: " ").map(String.init)
        let query = ["query", fixture.database, "SELECT count(*) FROM note", "--key-file", fixture.key]
        #expect(try fixture.run(query).status == 65)
        #expect(try fixture.run(query + words).status == 0)
    }

    @Test("diagnose has separate exit statuses for a missing file, a missing key and a wrong option")
    func statuses() throws {
        let fixture = try ToolFixture()
        #expect(try fixture.run("diagnose", fixture.database, "--key-file", fixture.key).status == 66)
        try fixture.make(encrypted: true)
        #expect(try fixture.run("diagnose", fixture.database).status == 66)
        #expect(try fixture.run("diagnose", fixture.database, "--max-rounds", "none").status == 64)
        #expect(try fixture.run("diagnose", fixture.database, "--key-file", fixture.keys.path("none")).status == 66)
    }
}
