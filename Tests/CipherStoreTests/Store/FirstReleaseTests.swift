import CipherSQLite
import Foundation
import TestSupport
import Testing

@testable import CipherStore

/// The first release with CipherStore, by the documented configurations: it meets plaintext users of every version.
struct FirstReleaseTests {
    struct User: Sendable, CustomTestStringConvertible {
        let system: String
        let version: String
        let example: String
        /// Counts what the user has; gives it back as text.
        let rows: String
        let expected: [String]
        var propertyList: String?
        let write: @Sendable (Connection) throws -> Void
        var testDescription: String { "\(system) \(version)" }
    }

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

    private static func declared(_ version: Int) -> User {
        User(
            system: "declared tables", version: "\(version)", example: "ChatStore.json",
            rows: "SELECT id || uid FROM chat ORDER BY id", expected: ["3u", "8v"]
        ) { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT);
                    INSERT INTO chat VALUES (3, 'u'), (8, 'v'); PRAGMA user_version = \(version);
                    """)
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

    @Test(
        "Plaintext users of every version, the current one included, are encrypted by the documented configuration",
        arguments: numbered + declared + template + tableVersions + appVersions)
    func encrypts(user: User) throws {
        let fixture = try PriorFixture(user.example)
        try fixture.write { try user.write($0) }
        #expect(try fixture.plan().step == .encrypt)
        #expect(try fixture.open().outcome == .encrypted)
        #expect(try fixture.values(user.rows) == user.expected)
        let again = try fixture.open()
        #expect(again.outcome == .opened)
        #expect(again.migration.applied.filter { $0.kind != .sql }.isEmpty)
    }

    @Test("A plaintext file that CipherStore encrypted before is none of a first release")
    func refusesDecrypted() throws {
        let fixture = try PriorFixture("NumberedSteps/NumberedSteps.plist")
        try fixture.write { try Self.numbered[0].write($0) }
        try fixture.open()
        // What SQLCipher's own export leaves: plaintext, with a history that knows of no decryption.
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

    @Test("What sinceVersion refuses, it names, with the number that it should be")
    func namesThreshold() throws {
        var fixture = try PriorFixture("NumberedSteps/NumberedSteps.plist")
        fixture.configuration.encryption.sinceVersion = 4
        try fixture.write { try Self.numbered[3].write($0) }
        let error = try #require(try storeError { try fixture.open() })
        #expect(error.code == .unexpectedPlaintext)
        #expect(error.description.contains("sinceVersion"))
        #expect(error.advice.contains("first version that never shipped in plaintext"))
    }
}
