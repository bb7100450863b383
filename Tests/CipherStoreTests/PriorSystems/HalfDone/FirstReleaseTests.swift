internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The first release with CipherStore, with the documented configurations, for plaintext users of every version.
struct FirstReleaseTests {
    struct User: Sendable, CustomTestStringConvertible {
        let system: String
        let version: String
        let example: String
        /// A query that counts the user's rows and returns the counts as text.
        let rows: String
        let expected: [String]
        /// The version in the property list that the app keeps beside the database.
        var keptVersion: Int?
        let write: @Sendable (Connection) throws -> Void
        var testDescription: String { "\(system) \(version)\(keptVersion.map { ", kept list \($0)" } ?? "")" }
    }

    /// The state of the files on the disk.
    enum Rest: Sendable, CaseIterable { case closed, log }

    private static let numbered = (1...4).map { version in
        User(
            system: "numbered steps", version: "\(version)", example: "NumberedSteps/NumberedSteps.plist",
            rows: "SELECT id || name FROM user_info ORDER BY id", expected: ["3Ana", "9Bo"]
        ) { connection in
            try LegacyStepsApp.numbered.write(version: version, to: connection)
            try connection.execute("INSERT INTO user_info (id, name) VALUES (3, 'Ana'), (9, 'Bo')")
        }
    }

    private static let declared = (1...26).flatMap { version in
        // The kept property list may be newer than the database.
        (20...26).contains(version) || version == 1 ? [declared(version)] : []
    }

    /// The kept list is older than the database, of the same version or newer, up to the app's version.
    private static let declaredWithList = [1, 20, 23, 24, 25, 26].flatMap { version in
        (version - 1...version + 1).filter { (1...26).contains($0) }.map { declared(version, keptVersion: $0) }
    }

    private static func declared(_ version: Int, keptVersion: Int? = nil) -> User {
        User(
            system: "declared tables", version: "\(version)", example: "ChatStore.json",
            rows: "SELECT id || uid FROM chat ORDER BY id", expected: ["3u", "8v"], keptVersion: keptVersion
        ) { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT);
                    INSERT INTO chat VALUES (3, 'u'), (8, 'v');
                    """)
            if version > 22 { try connection.execute("ALTER TABLE chat ADD COLUMN body TEXT") }
            if version > 24 {
                try connection.execute("CREATE TABLE draft(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT)")
            }
            // An app that keeps a list sets no other version.
            if keptVersion == nil { try connection.executeScript(text: "PRAGMA user_version = \(version)") }
        }
    }

    private static let template = (1...3).map { version in
        User(
            system: "a template", version: "\(version)", example: "Template/NoteStore.json",
            rows: "SELECT id FROM note ORDER BY id", expected: ["5", "9", "12"]
        ) { connection in
            guard version == 3 else { return try TemplateApp.writeDatabase(connection, version: version) }
            try connection.executeScript(text: TemplateApp.template(3))
            try connection.executeScript("INSERT INTO note (id, title) VALUES (5, 'first'), (9, NULL), (12, '')")
        }
    }

    private static let tableVersions = TableVersionsApp.releases.map { release in
        User(
            system: "table versions", version: "\(release)", example: "TableVersions/MessageStore.json",
            rows: "SELECT id FROM chat ORDER BY id", expected: ["5", "9", "4294967296"]
        ) { try TableVersionsApp.writeDatabase($0, release: release) }
    }

    private static let appVersions = [
        ("1.0.0", []), ("1.2.0", ["1.2.0"]), ("1.5.0", ["1.2.0"]), ("1.9.2", ["1.2.0", "1.9.2"]),
        ("1.10.0", ["1.2.0", "1.9.2", "1.10.0"]),
    ].map { (version: String, updates: [String]) in
        User(
            system: "app versions", version: version, example: "AppVersions/AppVersions.json",
            rows: "SELECT id || name FROM contact ORDER BY id", expected: ["3Ana", "9Bo"]
        ) { connection in
            try LegacyStepsApp.appVersions.write(appVersion: version, updates: updates, to: connection)
            try connection.execute("INSERT INTO contact (id, name) VALUES (3, 'Ana'), (9, 'Bo')")
        }
    }

    private static let users = numbered + declared + declaredWithList + template + tableVersions + appVersions
    /// The users of each system at the version of the release.
    private static let current = [
        numbered.last, declared.last, declaredWithList.last, template.last, tableVersions.last, appVersions.last,
    ].compactMap { $0 }

    private func fixture(_ user: User, _ rest: Rest = .closed) throws -> PriorFixture {
        var fixture = try PriorFixture(user.example)
        try fixture.write(journal: rest == .log ? "WAL" : "DELETE", unclosed: rest == .log) { try user.write($0) }
        if let kept = user.keptVersion {
            fixture.configuration.recordedVersion = .propertyList(file: "SpeSqlSetting.plist", key: "dbVersion")
            try fixture.folder.write(
                "<plist version=\"1.0\"><dict><key>dbVersion</key><integer>\(kept)</integer></dict></plist>",
                to: "SpeSqlSetting.plist")
        }
        return fixture
    }

    @Test(
        "The documented configuration encrypts plaintext files of every version, including the current one",
        arguments: users, Rest.allCases)
    func encrypts(user: User, rest: Rest) throws {
        let fixture = try fixture(user, rest)
        #expect(try fixture.plan().step == .encrypt)
        let report = try fixture.open()
        #expect(report.outcome == .encrypted)
        if let kept = user.keptVersion { #expect(report.migration.from == SchemaVersion(kept)) }
        #expect(try fixture.values(user.rows) == user.expected)
        #expect(try fixture.values("PRAGMA journal_mode") == [rest == .log ? "wal" : "delete"])
        let again = try fixture.open()
        #expect(again.outcome == .opened)
        #expect(again.migration.applied.filter { $0.kind != .sql }.isEmpty)
    }

    @Test(
        "A kept property list newer than the app is a downgrade, whatever the database contains",
        arguments: [1, 24, 26])
    func refusesNewerList(version: Int) throws {
        let fixture = try fixture(Self.declared(version, keptVersion: 27))
        let before = try fixture.digest()
        #expect(try storeError { try fixture.open() }?.code == .downgrade)
        #expect(try storeError { _ = try fixture.plan() }?.code == .downgrade)
        #expect(try fixture.digest() == before)
    }

    @Test(
        "After the first release sinceVersion is the next version, because its own would refuse current users",
        arguments: current, Rest.allCases)
    func acceptsNextVersion(user: User, rest: Rest) throws {
        var fixture = try fixture(user, rest)
        let version = fixture.configuration.version
        fixture.configuration.encryption.sinceVersion = version
        // If each table has its own version, nothing records a version for the whole database, so each such file counts
        // as older.
        if user.system != "table versions" {
            let before = try fixture.digest()
            let error = try #require(try storeError { try fixture.open() })
            #expect(error.code == .unexpectedPlaintext)
            #expect(error.advice.contains("first version of the app that never wrote a plaintext database"))
            #expect(try storeError { _ = try fixture.plan() }?.code == .unexpectedPlaintext)
            #expect(try fixture.digest() == before)
        }
        let numbers = version.components
        fixture.configuration.encryption.sinceVersion = SchemaVersion(
            (numbers.dropLast() + [(numbers.last ?? 0) + 1]).map { "\($0)" }.joined(separator: "."))
        #expect(try fixture.open().outcome == .encrypted)
        #expect(try fixture.values(user.rows) == user.expected)
    }

    @Test("A plaintext file that CipherStore encrypted before is not one of a first release")
    func refusesDecrypted() throws {
        let fixture = try PriorFixture("NumberedSteps/NumberedSteps.plist")
        try fixture.write { try Self.numbered[0].write($0) }
        try fixture.open()
        // The result of SQLCipher's own export: plaintext, with a history that contains no decryption.
        let plain = fixture.folder.path("plain.db")
        try fixture.read { connection in
            _ = try fixture.folder.write("", to: "plain.db")
            try connection.execute("ATTACH \(plain) AS plain KEY ''")
            _ = try connection.values(String?.self, "SELECT sqlcipher_export('plain')")
            _ = try connection.execute("DETACH plain")
        }
        try FileManager.default.removeItem(atPath: fixture.database)
        try FileManager.default.moveItem(atPath: plain, toPath: fixture.database)
        let connection = try Connection(path: fixture.database, mode: .readWrite)
        try connection.execute("PRAGMA user_version = 4")
        connection.close()
        let error = try #require(try storeError { try fixture.open() })
        #expect(error.code == .unexpectedPlaintext)
        #expect(error.description.contains("unexpectedPlaintext"))
    }

    @Test("A refusal because of sinceVersion names the setting, and the number that it should have")
    func namesThreshold() throws {
        var fixture = try PriorFixture("NumberedSteps/NumberedSteps.plist")
        fixture.configuration.encryption.sinceVersion = 4
        try fixture.write { try Self.numbered[3].write($0) }
        let error = try #require(try storeError { try fixture.open() })
        #expect(error.code == .unexpectedPlaintext)
        #expect(error.description.contains("sinceVersion"))
        #expect(error.advice.contains("first version of the app that never wrote a plaintext database"))
    }
}
