internal import CipherDatabaseConversion
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Encryption that is turned on, off and on again, with a backup each time.
struct AbortSwitchTests {
    private struct App {
        let folder: TemporaryFolder

        func open(encrypted: Bool, inserting row: String? = nil) throws -> OpenReport {
            var configuration = Configuration.declaring(["chat": ["body": "TEXT"]])
            configuration.encryption.isEnabled = encrypted
            configuration.encryption.keepBackup = true
            configuration.encryption.whenDisabled = .decrypt
            let opened = try StoreOpening(
                configuration: configuration, directory: folder.url.path(percentEncoded: false),
                provider: TestKeys.provider()
            ).run()
            guard let row else { return opened.report }
            let connection = try Connection(path: folder.path("app.db"), mode: .readWrite)
            defer { connection.close() }
            if encrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            try connection.execute("INSERT INTO chat VALUES (\(row))")
            return opened.report
        }

        func bodies(_ name: String, isEncrypted: Bool = false) throws -> [String] {
            let connection = try Connection(path: folder.path(name), mode: .readOnly)
            defer { connection.close() }
            if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            return try connection.values(String.self, "SELECT body FROM chat ORDER BY rowid")
        }
    }

    @Test("Turning encryption off and on again several times keeps each plaintext file and locks no one out")
    func severalTimes() throws {
        let app = App(folder: try TemporaryFolder())
        _ = try app.open(encrypted: false, inserting: "0")
        var rows = ["0"]
        for round in 1...3 {
            let report = try app.open(encrypted: true, inserting: "on \(round)")
            #expect(report.outcome == .encrypted)
            let backup = round == 1 ? "app.db-plaintext" : "app.db-plaintext-\(round)"
            #expect(report.encryption?.backup == app.folder.path(backup))
            #expect(try app.bodies(backup) == rows)
            #expect(report.warnings.filter { $0.contains("the earlier backup") }.count == round - 1)
            #expect(try app.open(encrypted: true).outcome == .opened)
            #expect(try app.open(encrypted: false, inserting: "off \(round)").outcome == .decrypted)
            rows += ["on \(round)", "off \(round)"]
        }
        #expect(try app.bodies("app.db") == rows)
        #expect(try app.folder.names == ["app.db", "app.db-plaintext", "app.db-plaintext-2", "app.db-plaintext-3"])
    }

    @Test("Removing an account removes every backup, and an inspection lists them")
    func everyBackup() throws {
        let app = App(folder: try TemporaryFolder())
        for number in 1...3 {
            _ = try app.open(encrypted: false, inserting: "\(number)")
            _ = try app.open(encrypted: true)
        }
        try app.folder.write("another's", to: "app.db-plaintext-02")
        let found = try Inspector(path: app.folder.path("app.db")).inspect(provider: nil, formats: [])
        #expect(
            found.sidecars.keys.sorted() == ["app.db-plaintext", "app.db-plaintext-2", "app.db-plaintext-3"])
        try AccountRemoval(paths: DatabasePaths(app.folder.path("app.db")), interruptedCopy: nil)
            .run(timeout: .seconds(1))
        #expect(try app.folder.names == ["app.db-plaintext-02"])
    }
}
