internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The app's own upgrade of one table, killed after each of its statements.
struct KilledTableUpgradeTests {
    /// The new form of `chat(id, uid, msg, mood, mark)` in the release.
    enum Change: String, Sendable, CaseIterable {
        case none, adds, drops, dropsMost, renames, renamesAndDrops

        var columns: [(name: String, type: String)] {
            let key = [("id", "INTEGER PRIMARY KEY AUTOINCREMENT"), ("uid", "TEXT")]
            return key
                + {
                    switch self {
                    case .none: [("msg", "TEXT"), ("mood", "TEXT"), ("mark", "INTEGER")]
                    case .adds:
                        [("msg", "TEXT"), ("mood", "TEXT"), ("mark", "INTEGER"), ("edited", "INTEGER DEFAULT 0")]
                    case .drops: [("msg", "TEXT"), ("mark", "INTEGER")]
                    case .dropsMost: []
                    case .renames: [("body", "TEXT"), ("mood", "TEXT"), ("mark", "INTEGER")]
                    case .renamesAndDrops: [("body", "TEXT"), ("edited", "INTEGER DEFAULT 0")]
                    }
                }()
        }

        var renamed: [(new: String, old: String)] {
            self == .renames || self == .renamesAndDrops ? [("body", "msg")] : []
        }

        /// The columns that are copied, by their new names and the old ones.
        var copied: [(new: String, old: String)] {
            let old = ["uid", "msg", "mood", "mark"]
            return columns.compactMap { column in
                if old.contains(column.name) { return (column.name, column.name) }
                return renamed.first { $0.new == column.name }
            }
        }
    }

    /// The other objects in the database.
    enum Surroundings: String, Sendable, CaseIterable {
        case nothing, view, trigger, foreignKey, all

        var script: String {
            let view = "CREATE VIEW talk AS SELECT uid FROM chat;"
            let trigger =
                "CREATE TRIGGER noted AFTER INSERT ON contact BEGIN INSERT INTO chat(uid) VALUES (new.uid); END;"
            let foreignKey =
                "CREATE TABLE reaction(chatId INTEGER REFERENCES chat(id)); INSERT INTO reaction VALUES (9);"
            return switch self {
            case .nothing: ""
            case .view: view
            case .trigger: trigger
            case .foreignKey: foreignKey
            case .all: view + trigger + foreignKey
            }
        }
    }

    /// How the rows are copied.
    enum Copying: String, Sendable, CaseIterable {
        case atOnce, oneByOne, withKeys
    }

    struct Upgrade: Sendable, CustomTestStringConvertible {
        let change: Change
        let surroundings: Surroundings
        let copying: Copying
        let isLegacyAlter: Bool

        var testDescription: String {
            "\(change), \(surroundings), \(copying)\(isLegacyAlter ? ", legacy_alter_table" : "")"
        }

        static let all = Change.allCases.flatMap { change in
            Surroundings.allCases.flatMap { surroundings in
                Copying.allCases.flatMap { copying in
                    [false, true].map {
                        Upgrade(change: change, surroundings: surroundings, copying: copying, isLegacyAlter: $0)
                    }
                }
            }
        }

        var json: String {
            let columns = change.columns.map { #"{ "\#($0.name)": "\#($0.type)" }"# }.joined(separator: ", ")
            let renamed = change.renamed.map { #""\#($0.new)": "\#($0.old)""# }.joined(separator: ", ")
            return """
                { "dbName": "im.db", "dbVersion": 2, "tableVersions": {
                    "chat": { "version": 1.1, "columns": [\(columns)], "renamedColumns": { \(renamed) } %@ },
                    "contact": { "version": 2, "columns": [
                        { "id": "INTEGER PRIMARY KEY AUTOINCREMENT" }, { "uid": "TEXT" }, { "name": "TEXT" } ] },
                    "attachment": { "version": 1, "columns": [
                        { "id": "INTEGER PRIMARY KEY AUTOINCREMENT" }, { "chatId": "INTEGER REFERENCES chat(id)" } ] } } }
                """
        }

        /// The statements of the upgrade, in order.
        var statements: [String] {
            let columns = change.columns.map { "\($0.name) \($0.type)" }.joined(separator: ", ")
            let keys = copying == .withKeys ? [("id", "id")] : []
            let new = (keys + change.copied).map(\.0).joined(separator: ", ")
            let old = (keys + change.copied).map(\.1).joined(separator: ", ")
            let copy = "INSERT INTO chat(\(new)) SELECT \(old) FROM tableOld"
            let copies =
                copying == .atOnce ? [copy] : [4, 5, 9].map { copy + " WHERE id = \($0)" }
            return ["ALTER TABLE chat RENAME TO tableOld", "CREATE TABLE chat(\(columns))"] + copies
                + ["DROP TABLE tableOld", "UPDATE tableVersion SET version = 1.1 WHERE name = 'chat'"]
        }
    }

    private static let old = """
        CREATE TABLE tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE);
        INSERT INTO tableVersion(name, version) VALUES ('chat', 1.0), ('contact', 1.5), ('attachment', 1);
        CREATE TABLE contact(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT);
        INSERT INTO contact VALUES (7, 'ana');
        CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, msg TEXT, mood TEXT, mark INTEGER);
        CREATE TABLE attachment(id INTEGER PRIMARY KEY AUTOINCREMENT, chatId INTEGER REFERENCES chat(id));
        INSERT INTO chat VALUES (4, 'ana', 'one', 'glad', 1), (5, 'bo', 'two', NULL, 2), (9, 'ana', 'three', 'sad', NULL);
        INSERT INTO attachment VALUES (1, 5), (2, 9);
        """

    private func fixture(_ upgrade: Upgrade, until count: Int, _ more: String = "") throws -> PriorFixture {
        var fixture = try PriorFixture("TableVersions/MessageStore.json")
        fixture.configuration = try Self.configuration(upgrade)
        // The resulting schema is the same in an encrypted copy, and there are a thousand states here.
        fixture.configuration.encryption.isEnabled = upgrade.surroundings == .all
        try fixture.write { connection in
            try connection.executeScript(text: Self.old + upgrade.surroundings.script)
            try connection.executeScript(text: "PRAGMA legacy_alter_table = \(upgrade.isLegacyAlter ? "ON" : "OFF")")
            for statement in upgrade.statements.prefix(count) { try connection.executeScript(text: statement) }
            try connection.executeScript(text: more)
        }
        return fixture
    }

    private static func configuration(_ upgrade: Upgrade, _ more: String = "") throws -> Configuration {
        try Configuration(data: Data(upgrade.json.replacing("%@", with: more).utf8), place: "app.json")
    }

    /// The files after each statement before the `DROP`, and before the first one.
    ///
    /// After the `DROP`, the app itself has given its rows new keys.
    private static func states(of upgrade: Upgrade) throws -> [FolderState] {
        let scratch = try TemporaryFolder(inMemory: true)
        let connection = try Connection(path: scratch.path("im.db"), mode: .create)
        defer { connection.close() }
        try connection.executeScript(text: old + upgrade.surroundings.script)
        try connection.executeScript(text: "PRAGMA legacy_alter_table = \(upgrade.isLegacyAlter ? "ON" : "OFF")")
        return try [FolderState(scratch)]
            + upgrade.statements.dropLast(2).map { statement in
                try connection.executeScript(text: statement)
                return try FolderState(scratch)
            }
    }

    // MARK: Tests

    @Test("After a kill at any statement, every row is in its table under its key", arguments: Upgrade.all)
    func recovers(upgrade: Upgrade) throws {
        let columns = upgrade.change.columns.map(\.name)
        let text = columns.contains("body") ? "body" : upgrade.change == .dropsMost ? "''" : "msg"
        var configuration = try Self.configuration(upgrade)
        // The resulting schema is the same in an encrypted copy, and there are a thousand states here.
        configuration.encryption.isEnabled = upgrade.surroundings == .all
        for (count, files) in try Self.states(of: upgrade).enumerated() {
            let fixture = try PriorFixture(files, configuration)
            let report = try fixture.open()
            let state: Comment = "behind \(count) statements"
            #expect(report.migration.withheld.allSatisfy { $0.kind == .dropColumn }, state)
            try fixture.read { (connection) throws in
                func values(_ sql: String) throws -> [String] { try PriorFixture.values(sql, connection) }
                #expect(
                    try values("SELECT id || uid || \(text) FROM chat ORDER BY id")
                        == (text == "''" ? ["4ana", "5bo", "9ana"] : ["4anaone", "5botwo", "9anathree"]), state)
                #expect(
                    try values("SELECT name FROM sqlite_master WHERE name = 'tableOld' OR sql LIKE '%tableOld%'") == [],
                    state)
                #expect(
                    try values("SELECT uid FROM attachment JOIN chat ON chat.id = chatId ORDER BY attachment.id")
                        == ["bo", "ana"], state)
                #expect(try values("PRAGMA foreign_key_check") == [], state)
                if upgrade.surroundings == .view || upgrade.surroundings == .all {
                    #expect(try values("SELECT uid FROM talk ORDER BY 1") == ["ana", "ana", "bo"], state)
                }
            }
            guard upgrade.surroundings == .all else { continue }
            #expect(try fixture.open().migration.applied.isEmpty, state)
        }
    }

    /// The rows that the app wrote after the kill, so that only the app's developer knows which rows count.
    static let later = [
        "INSERT INTO chat(uid) VALUES ('later')",
        "INSERT INTO chat(uid) SELECT uid FROM tableOld WHERE id = 4; UPDATE chat SET uid = 'ANA'",
    ]

    @Test(
        "If both tables have rows of their own, nothing is recorded until a later release of the app decides",
        arguments: Upgrade.all.filter { $0.surroundings == .all && $0.copying == .atOnce }, later)
    func asks(upgrade: Upgrade, later: String) throws {
        var fixture = try fixture(upgrade, until: 2, later)
        let before = try fixture.digest()
        for _ in 1...2 {
            let error = try #require(try storeError { try fixture.open() })
            #expect(error.code == .migration)
            #expect(error.description.contains("tableVersions.chat.leftoverRows"))
            #expect(try storeError { _ = try fixture.plan() }?.code == .migration)
            #expect(try fixture.digest() == before)
        }
        fixture.configuration = try Self.configuration(upgrade, #", "leftoverRows": "keep""#)
        fixture.configuration.version = 3
        let report = try fixture.open()
        #expect(report.migration.withheld.contains { $0.table == "tableOld" && $0.rows == 3 })
        #expect(try fixture.values("SELECT id FROM tableOld ORDER BY id") == ["4", "5", "9"])
        #expect(try fixture.values("SELECT count(*) FROM chat") == ["1"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test("A tableOld that has only its key in common with a table is refused, and a later release names it")
    func asksWhose() throws {
        let upgrade = Upgrade(change: .none, surroundings: .nothing, copying: .atOnce, isLegacyAlter: false)
        let json = upgrade.json.replacing("%@", with: "").replacing(
            #"{ "uid": "TEXT" }, { "msg": "TEXT" }, { "mood": "TEXT" }, { "mark": "INTEGER" }"#,
            with: #"{ "title": "TEXT" }"#)
        func configure(_ more: String) throws -> Configuration {
            let text = json.replacing(#""renamedColumns": {  }"#, with: #""renamedColumns": {  } \#(more)"#)
            return try Configuration(data: Data(text.utf8), place: "app.json")
        }
        var fixture = try PriorFixture("TableVersions/MessageStore.json")
        fixture.configuration = try configure("")
        try fixture.write { connection in
            try connection.executeScript(text: Self.old)
            try connection.executeScript(
                "ALTER TABLE chat RENAME TO tableOld; CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT)"
            )
        }
        let before = try fixture.digest()
        let error = try #require(try storeError { try fixture.open() })
        #expect(error.description.contains("tableVersions.chat.leftover"))
        #expect(try fixture.digest() == before)
        fixture.configuration = try configure(#", "leftover": "tableOld""#)
        try fixture.open()
        #expect(
            try fixture.values("SELECT id || uid || msg FROM chat ORDER BY id") == ["4anaone", "5botwo", "9anathree"])
    }

    // Before SQLite 3.26, the references of other tables stay with the new table's name, and a number that both tables
    // contain may refer to either row.
    @Test(
        "Equal rows, rows in the order of an index and incomplete copies are recognized as copies",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_026_000),
        arguments: [
            "INSERT INTO chat(uid, msg, mood, mark) SELECT uid, msg, mood, mark FROM tableOld ORDER BY uid",
            "INSERT INTO chat(uid, msg, mood, mark) SELECT uid, msg, mood, mark FROM tableOld; DELETE FROM chat WHERE id = 2",
            "INSERT INTO chat(uid, msg, mood, mark) SELECT uid, msg, mood, mark FROM tableOld WHERE id > 40 LIMIT 2",
        ])
    func takesCopies(script: String) throws {
        let upgrade = Upgrade(change: .none, surroundings: .nothing, copying: .atOnce, isLegacyAlter: false)
        let more = "INSERT INTO tableOld(id, uid) VALUES (41, 'twin'), (42, 'twin'), (43, 'twin');"
        let fixture = try fixture(upgrade, until: 2, more + script)
        try fixture.open()
        #expect(try fixture.values("SELECT id FROM chat ORDER BY id") == ["4", "5", "9", "41", "42", "43"])
        #expect(try fixture.values("SELECT name FROM sqlite_master WHERE name = 'tableOld'") == [])
    }

    @Test("A row under a meaningful key is not a copy of an otherwise equal row")
    func keepsMeaningfulKeys() throws {
        let upgrade = Upgrade(change: .none, surroundings: .nothing, copying: .atOnce, isLegacyAlter: false)
        let fixture = try fixture(
            upgrade, until: 2, "INSERT INTO chat SELECT 77, uid, msg, mood, mark FROM tableOld WHERE id = 5")
        let before = try fixture.digest()
        #expect(try storeError { try fixture.open() }?.code == .migration)
        #expect(try fixture.digest() == before)
    }
}
