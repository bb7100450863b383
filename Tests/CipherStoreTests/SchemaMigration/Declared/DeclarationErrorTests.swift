internal import CipherCatalog
internal import CipherErrors
internal import CipherHistory
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Testing

struct DeclarationErrorTests {
    struct Broken: Sendable, CustomTestStringConvertible {
        var table = "chat"
        var column = "id"
        var definition: String
        var place = "chat.id"
        var testDescription: String { [table, column, definition].map(\.debugDescription).joined(separator: ", ") }
    }

    static let broken = [
        Broken(definition: "TEXT); DROP TABLE keep; --"),
        Broken(definition: "TEXT) --"),
        Broken(definition: "TEXT); --\n"),
        Broken(definition: "TEXT --"),
        Broken(definition: "TEXT /*"),
        Broken(definition: "TEXT DEFAULT 'x"),
        Broken(definition: "TEXT DEFAULT \"x"),
        Broken(definition: "TEXT DEFAULT (1"),
        Broken(definition: "TEXT, extra TEXT"),
        Broken(definition: "TEXT\0"),
        Broken(definition: "NOT A TYPE NULL NULL ("),
        Broken(definition: "TEXT CHECK (nosuch(id))"),
        Broken(definition: "TEXT COLLATE nosuch"),
        Broken(definition: "TEXT DEFAULT"),
        Broken(definition: "PRIMARY KEY PRIMARY KEY"),
        Broken(column: "LAST", definition: "TEXT", place: "chat.last"),
        Broken(column: "", definition: "TEXT", place: "chat."),
        Broken(column: "a\0b", definition: "TEXT", place: "chat.a\0b"),
        Broken(table: "", definition: "TEXT", place: "declaration of "),
        Broken(table: "sqlite_x", definition: "TEXT", place: "sqlite_x"),
        Broken(table: "cipherstore_history", definition: "TEXT", place: "cipherstore_history"),
        Broken(table: "KEEP", definition: "TEXT", place: "keep"),
    ]

    @Test(
        "An unusable declaration is a typed error that names the place, and changes nothing",
        arguments: broken)
    func namesPlace(broken: Broken) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE keep(x); INSERT INTO keep VALUES (1)")
        let before = try fixture.bytes()
        let configuration = Configuration(
            databaseName: "app.db", version: 2,
            schema: .tables([
                DeclaredTable(
                    name: broken.table,
                    columns: [
                        .init(name: broken.column, definition: broken.definition),
                        .init(name: "last", definition: "TEXT"),
                    ]),
                DeclaredTable(name: "keep", columns: [.init(name: "x", definition: "")]),
            ]))
        let error = try #require(try storeError { try fixture.launch(configuration) })
        #expect(error.code == .configuration)
        #expect(error.path == nil)
        #expect(error.detail.contains(broken.place))
        #expect(try fixture.bytes() == before)
    }

    @Test("A declaration is parsed by SQLite, with comments, quotes, parentheses and table constraints")
    func takesUnusualDefinitions() throws {
        let fixture = try MigrationFixture()
        try fixture.launch(
            .declaring([
                "a": [
                    "w": "TEXT /* a ; ) comment */ NOT NULL", "x": "TEXT -- another\n", "y": "VARCHAR(10) DEFAULT ';)'",
                    "z": "TEXT CHECK (z <> ')') DEFAULT 'it''s', UNIQUE (x, y)",
                ]
            ]))
        #expect(try fixture.with { try ColumnState.read(table: "a", from: $0).count } == 4)
    }

    @Test("A declaration without columns is refused")
    func refusesNoColumns() throws {
        let fixture = try MigrationFixture()
        let error = try storeError { try fixture.launch(.declaring(["a": [:]])) }
        #expect(error?.code == .configuration)
    }

    static let taken = [
        "CREATE TABLE other(a); CREATE INDEX Chat ON other(a)", "CREATE VIEW chat AS SELECT 1 AS id",
        "CREATE VIRTUAL TABLE chat USING fts4(body)",
    ]

    @Test(
        "A declared name that another object in the database has is refused, and nothing is changed", arguments: taken)
    func refusesTakenName(script: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), script)
        let before = try fixture.bytes()
        let error = try #require(try storeError { try fixture.launch(.declaring(["chat": ["id": "INTEGER"]])) })
        #expect(error.code == .migration)
        #expect(error.detail.contains("chat"))
        #expect(try fixture.bytes() == before)
    }
}
