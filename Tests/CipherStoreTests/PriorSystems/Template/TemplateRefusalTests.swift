internal import CipherErrors
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Templates that cannot be used: a typed error names each, and the user's database is unchanged.
struct TemplateRefusalTests {
    /// A template that cannot be used.
    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: StoreError.Code
        let word: String
        let make: @Sendable (_ path: String) throws -> Void

        init(
            _ name: String, _ code: StoreError.Code, _ word: String, _ make: @escaping @Sendable (String) throws -> Void
        ) {
            testDescription = name
            self.code = code
            self.word = word
            self.make = make
        }

        static func script(_ script: String) -> @Sendable (String) throws -> Void {
            { path in try LegacyFile.write(path, script: script) }
        }

        static func overwrite(_ path: String, at offset: UInt64) throws {
            try script(TemplateApp.template(3))(path)
            let file = try FileHandle(forUpdating: URL(filePath: path))
            try file.seek(toOffset: offset)
            try file.write(contentsOf: Data(repeating: 0xa5, count: 3000))
            try file.close()
        }

        static let record = "CREATE TABLE Records (name TEXT, value TEXT); "

        static let all: [Fault] = [
            Fault("missing", .missingFile, "no template") { _ in },
            Fault("a folder", .notAFile, "directory") {
                try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: false)
            },
            Fault("of no byte", .configuration, "empty") { try Data().write(to: URL(filePath: $0)) },
            Fault("without a table", .configuration, "no table", script("PRAGMA user_version = 3")),
            Fault("encrypted", .configuration, "encrypted") { path in
                try LegacyFile.write(path, key: TestKeys.raw(9), script: TemplateApp.template(3))
            },
            Fault("truncated", .corrupt, "the ") { path in
                try script(TemplateApp.template(3))(path)
                let file = try FileHandle(forUpdating: URL(filePath: path))
                try file.truncate(atOffset: 8192)
                try file.close()
            },
            Fault("damaged in its schema", .corrupt, "damaged") { try overwrite($0, at: 120) },
            Fault("damaged in a table", .corrupt, "damaged") { try overwrite($0, at: 4096 * 4) },
            Fault("with a damaged log", .corrupt, "-wal is damaged") { path in
                try LegacyFile.write(path, unclosed: true) { connection in
                    try connection.executeScript(text: TemplateApp.template(3))
                    try DamagedLog.commit("INSERT INTO tip VALUES ('x')", connection)
                }
                try DamagedLog.damage(path + "-wal")
            },
            Fault("older", .configuration, "older", script(TemplateApp.template(2))),
            Fault(
                "newer", .configuration, "newer",
                script(TemplateApp.template(3).replacing("('DBVersion', '3')", with: "('DBVersion', '4')"))),
            Fault(
                "without a record of its version", .recordedVersion, "records no version", script("CREATE TABLE a (b)")),
            Fault(
                "with another record", .recordedVersion, "records no version",
                script(record + "INSERT INTO Records VALUES ('x', '3')")),
            Fault(
                "with a word for a version", .recordedVersion, "not a valid version",
                script(record + "INSERT INTO Records VALUES ('DBVersion', 'three')")),
            Fault(
                "with a negative version", .recordedVersion, "not a valid version",
                script(record + "INSERT INTO Records VALUES ('DBVersion', '-3')")),
        ]
    }

    private func fixture(_ fault: Fault, _ shop: TemporaryFolder) throws -> PriorFixture {
        var fixture = try PriorFixture("Template/NoteStore.json")
        let path = shop.path("db.db")
        try fault.make(path)
        fixture.configuration.schema = .template(.init(file: path))
        return fixture
    }

    @Test("An unusable template prevents the upgrade of a legacy file", arguments: Fault.all)
    func refusesLegacy(fault: Fault) throws {
        let shop = try TemporaryFolder()
        let fixture = try fixture(fault, shop)
        try fixture.write { try TemplateApp.writeDatabase($0, version: 1) }
        let before = try fixture.digest()
        for attempt in [{ _ = try fixture.plan() }, { try fixture.open() }] {
            let error = try #require(try storeError(from: attempt))
            #expect(error.code == fault.code)
            #expect(error.path?.hasPrefix(shop.path("db.db")) == true)
            #expect(error.detail.contains(fault.word), "\(error)")
        }
        #expect(try fixture.digest() == before)
    }

    @Test("An unusable template prevents a fresh install", arguments: Fault.all)
    func refusesFresh(fault: Fault) throws {
        let shop = try TemporaryFolder()
        let fixture = try fixture(fault, shop)
        #expect(try storeError { try fixture.open() }?.code == fault.code)
        #expect(try fixture.folder.names == [])
    }

    @Test("An unusable template prevents the opening of an encrypted database", arguments: Fault.all)
    func refusesEncrypted(fault: Fault) throws {
        let shop = try TemporaryFolder()
        var fixture = try PriorFixture("Template/NoteStore.json")
        try fixture.write { try TemplateApp.writeDatabase($0, version: 1) }
        try fixture.open()
        // A drift that would be repaired.
        try fixture.read { try $0.execute("DROP TABLE unit") }
        let path = shop.path("db.db")
        try fault.make(path)
        fixture.configuration.schema = .template(.init(file: path))
        let before = try fixture.digest()
        #expect(try storeError { try fixture.open() }?.code == fault.code)
        #expect(try fixture.digest() == before)
    }

    @Test("A database newer than the app is refused")
    func refusesDowngrade() throws {
        let fixture = try PriorFixture("Template/NoteStore.json")
        try fixture.write { connection in
            try TemplateApp.writeDatabase(connection, version: 2)
            try connection.execute("UPDATE Records SET value = '4'")
        }
        let before = try fixture.digest()
        #expect(try storeError { try fixture.open() }?.code == .downgrade)
        #expect(try fixture.digest() == before)
    }

    @Test("A user's record that is not a version is refused", arguments: ["three", "-1", ""])
    func refusesBadRecord(value: String) throws {
        let fixture = try PriorFixture("Template/NoteStore.json")
        try fixture.write { connection in
            try TemplateApp.writeDatabase(connection, version: 1)
            try connection.execute("UPDATE Records SET value = \(value) WHERE name = 'DBVersion'")
        }
        let before = try fixture.digest()
        #expect(try storeError { try fixture.open() }?.code == .recordedVersion)
        #expect(try fixture.digest() == before)
    }

    @Test("The template cannot be the database itself")
    func refusesItself() throws {
        var fixture = try PriorFixture("Template/NoteStore.json")
        try fixture.write { try TemplateApp.writeDatabase($0, version: 1) }
        fixture.configuration.schema = .template(.init(file: fixture.database))
        #expect(try storeError { try fixture.open() }?.code == .configuration)
    }
}
