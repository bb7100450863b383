internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The files in `Config/`, and the property list that existing apps ship.
struct ExampleConfigurationTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func tables(_ configuration: Configuration) throws -> [DeclaredTable] {
        guard case .tables(let tables) = configuration.schema else {
            Issue.record("the configuration declares no tables")
            return []
        }
        return tables
    }

    @Test("The example has the same meaning in every format", arguments: ["plist", "json"])
    func example(kind: String) throws {
        let configuration = try Configuration(contentsOf: Repository.examples.appending(path: "ChatStore.\(kind)"))
        #expect(configuration.databaseName == "local.db")
        #expect(configuration.version == 26)
        #expect(configuration.encryption == Configuration.Encryption())
        #expect(configuration.destructiveChanges == .withhold)
        guard case .userVersion = configuration.recordedVersion else {
            Issue.record("the version is recorded elsewhere")
            return
        }
        let tables = try tables(configuration)
        #expect(tables.map(\.name) == ["chat", "contact", "draft"])
        #expect(
            tables.first?.columns.map(\.name)
                == ["id", "uid", "body", "attachment", "sentAt", "score", "edited", "threadId"])
        #expect(tables.first?.columns.first?.definition == "INTEGER PRIMARY KEY AUTOINCREMENT")
    }

    @Test func `The example is read as a binary property list, whatever its name`() throws {
        let xml = try Data(contentsOf: Repository.examples.appending(path: "ChatStore.plist"))
        let list = try PropertyListSerialization.propertyList(from: xml, format: nil)
        let binary = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
        let file = folder.url.appending(path: "settings.json")
        try binary.write(to: file)
        let configuration = try Configuration(contentsOf: file)
        let original = try Configuration(data: xml, place: "ChatStore.plist")
        #expect(try tables(configuration) == tables(original))
        #expect(configuration.encryption == original.encryption)
    }

    @Test func `Every example can be made as a database`() throws {
        let configuration = try Configuration(contentsOf: Repository.examples.appending(path: "ChatStore.plist"))
        let connection = try Connection(path: folder.path("local.db"), mode: .create)
        for table in try tables(configuration) {
            let columns = table.columns.map { SQL.quoted(identifier: $0.name) + " " + $0.definition }
            try connection.executeScript(
                text: "CREATE TABLE \(SQL.quoted(identifier: table.name)) (\(columns.joined(separator: ", ")))")
        }
        let names: [String] = try connection.values(
            String.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY 1")
        #expect(names == ["chat", "contact", "draft"])
    }

    @Test func `The plist of an app that declared its tables is valid as it is`() throws {
        let plist = """
            <?xml version="1.0" encoding="UTF-8"?>
            <plist version="1.0"><dict>
            <key>dbName</key><string>local.db</string>
            <key>dbVersion</key><integer>24</integer>
            <key>dbTables</key><array><dict><key>chat</key><array>
            <dict><key>id</key><string>INTEGER PRIMARY KEY AUTOINCREMENT</string></dict>
            <dict><key>uid</key><string>TEXT</string></dict>
            </array></dict></array>
            </dict></plist>
            """
        let configuration = try Configuration(data: Data(plist.utf8), place: "SpeSqlSetting.plist")
        #expect(configuration.version == 24)
        #expect(configuration.encryption.isEnabled)
        #expect(
            try tables(configuration) == [
                DeclaredTable(
                    name: "chat",
                    columns: [
                        .init(name: "id", definition: "INTEGER PRIMARY KEY AUTOINCREMENT"),
                        .init(name: "uid", definition: "TEXT"),
                    ])
            ])
    }

    @Test("The options in the documentation fit the example, and create a database")
    func documentedOptions() throws {
        let text = try String(contentsOf: Repository.examples.appending(path: "README.md"), encoding: .utf8)
        let block = try #require(text.split(separator: "```json\n").first { $0.hasPrefix("\"tableOptions\"") })
        let options = try #require(block.split(separator: "\n```").first)
        let example = try String(contentsOf: Repository.examples.appending(path: "ChatStore.json"), encoding: .utf8)
        let end = try #require(example.lastIndex(of: "}"))
        let configuration = try Configuration(data: Data("\(example[..<end]), \(options)}".utf8), place: "README.md")
        let connection = try Connection(path: folder.path("documented.db"), mode: .create)
        defer { connection.close() }
        _ = try SchemaMigrator(configuration: configuration).migrate(connection) { nil }
        let indexes = try connection.values(
            String.self, "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
        #expect(indexes == ["chat_thread", "chat_uid"])
    }
}
