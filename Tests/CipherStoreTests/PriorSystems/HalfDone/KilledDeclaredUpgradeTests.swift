internal import CipherCatalog
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The upgrades of an app with a declared schema, killed after each of their statements and file operations.
struct KilledDeclaredUpgradeTests {
    /// The state of the database on the disk.
    enum Rest: String, Sendable, CaseIterable {
        case rollback
        /// In WAL mode, with the upgrade's changes in the log.
        case log
        /// In one transaction, which the kill interrupts.
        case transaction

        func begin(_ connection: Connection) throws {
            switch self {
            case .rollback: break
            case .log:
                _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
                _ = try connection.value(Int.self, "PRAGMA wal_autocheckpoint = 0")
            case .transaction:
                // Pages are written to the file before the transaction ends.
                try connection.executeScript("PRAGMA cache_size = 1; BEGIN")
            }
        }
    }

    /// The copy of the property list that the app keeps beside its database.
    enum KeptList: Sendable, CustomTestStringConvertible {
        case version(Int)
        case missing
        /// The process was killed while it wrote the list, of which this many bytes exist.
        case cut(Int)

        var testDescription: String { "\(self)" }

        func write(to fixture: PriorFixture) throws {
            func text(_ version: Int) -> String {
                """
                <plist version="1.0"><dict><key>dbName</key><string>local.db</string><key>dbVersion</key>
                <integer>\(version)</integer><key>dbTables</key><array/></dict></plist>
                """
            }
            switch self {
            case .version(let version): try fixture.folder.write(text(version), to: Self.name)
            case .missing: break
            case .cut(let size): try fixture.folder.write(String(text(23).prefix(size)), to: Self.name)
            }
        }

        static let name = "SpeSqlSetting.plist"
    }

    private static func table(_ name: String, _ columns: String...) -> DeclaredTable {
        DeclaredTable(
            name: name,
            columns: [.init(name: "id", definition: "INTEGER PRIMARY KEY AUTOINCREMENT")]
                + columns.map { .init(name: $0, definition: $0 == "content" ? "BLOB" : "TEXT") })
    }

    private static let configuration = Configuration(
        databaseName: "local.db", version: 26,
        recordedVersion: .propertyList(file: KeptList.name, key: "dbVersion"),
        schema: .tables([
            table("chat", "uid", "content", "added", "more"), table("contact", "uid", "name", "added"),
            table("draft", "body"), table("call", "uid"),
        ]))

    private static let old = """
        CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, content BLOB);
        CREATE TABLE contact(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, name TEXT);
        CREATE TABLE gone(id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT);
        CREATE TABLE gone2(id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT);
        INSERT INTO chat VALUES (5, 'ana', x'00ff'), (9000000000, NULL, zeroblob(9000)), (9000000001, '', x'');
        INSERT INTO contact VALUES (3, 'ana', 'Äpfel & 梨'), (8, 'bo', NULL);
        INSERT INTO gone VALUES (1, 'kept'); INSERT INTO gone2 VALUES (7, hex(zeroblob(5000)));
        """
    private static let surroundings = """
        CREATE INDEX chat_uid ON chat(uid);
        CREATE VIEW recent AS SELECT chat.uid, name FROM chat LEFT JOIN contact ON contact.uid = chat.uid;
        CREATE TABLE reaction(chat INTEGER REFERENCES chat(id) ON DELETE CASCADE, mood TEXT);
        INSERT INTO reaction VALUES (5, 'glad'), (9000000000, NULL);
        CREATE TRIGGER noted AFTER DELETE ON contact BEGIN DELETE FROM chat WHERE uid = old.uid; END;
        """

    private func fixture(_ files: FolderState, _ list: KeptList) throws -> PriorFixture {
        let fixture = try PriorFixture(files, Self.configuration)
        try list.write(to: fixture)
        return fixture
    }

    /// Returns the rows of a state, which SQLite alone reads from a copy.
    private func rows(_ files: FolderState, isEncrypted: Bool) throws -> UserRows {
        let folder = try TemporaryFolder(inMemory: true)
        try files.write(to: folder)
        let connection = try Connection(path: folder.path("local.db"), mode: .create)
        defer { connection.close() }
        if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
        return try UserRows(connection)
    }

    private func states(
        of statements: [String], from script: String, _ rest: Rest, isEncrypted: Bool
    ) throws -> [FolderState] {
        let scratch = try TemporaryFolder(inMemory: true)
        let connection = try Connection(path: scratch.path("local.db"), mode: .create)
        defer { connection.close() }
        if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
        try connection.executeScript(text: script)
        try rest.begin(connection)
        return try [FolderState(scratch)]
            + statements.map { statement in
                try connection.executeScript(text: statement)
                return try FolderState(scratch)
            }
    }

    private func expectRows(_ rows: UserRows, in fixture: PriorFixture, _ name: Comment) throws {
        #expect(try rows.missing(in: fixture.read { try UserRows($0) }) == [], name)
        #expect(try fixture.values("PRAGMA foreign_key_check") == [], name)
        #expect(
            try fixture.read { try ColumnState.read(table: "chat", from: $0).map(\.name) }
                == ["id", "uid", "content", "added", "more"], name)
    }

    // MARK: The upgrade of the schema

    struct Upgrade: Sendable, CustomTestStringConvertible {
        let rest: Rest
        let isEncrypted: Bool
        let hasSurroundings: Bool
        var testDescription: String {
            "\(rest)\(isEncrypted ? ", encrypted" : "")\(hasSurroundings ? ", among other objects" : "")"
        }

        static let all = Rest.allCases.flatMap { rest in
            [false, true].flatMap { isEncrypted in
                [false, true].map { Upgrade(rest: rest, isEncrypted: isEncrypted, hasSurroundings: $0) }
            }
        }
    }

    private static let statements = [
        "CREATE TABLE draft(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)",
        "CREATE TABLE call(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT)",
        "ALTER TABLE chat ADD COLUMN added TEXT", "ALTER TABLE chat ADD COLUMN more TEXT",
        "ALTER TABLE contact ADD COLUMN added TEXT", "DROP TABLE gone", "DROP TABLE gone2",
    ]

    @Test(
        "After a kill at any statement of the schema's upgrade, every row is in its table",
        arguments: Upgrade.all, [KeptList.version(25), .version(26)])
    func recovers(upgrade: Upgrade, list: KeptList) throws {
        let script = Self.old + (upgrade.hasSurroundings ? Self.surroundings : "")
        let states = try states(of: Self.statements, from: script, upgrade.rest, isEncrypted: upgrade.isEncrypted)
        for (index, files) in states.enumerated() {
            let name: Comment = "behind \(index) statements"
            let rows = try rows(files, isEncrypted: upgrade.isEncrypted)
            #expect(rows.count >= 5, name)
            let fixture = try fixture(files, list)
            let report = try fixture.open()
            #expect(report.outcome == (upgrade.isEncrypted ? .opened : .encrypted), name)
            #expect(report.migration.from == (list.testDescription == "version(25)" ? 25 : 26), name)
            try expectRows(rows, in: fixture, name)
            #expect(try fixture.open().migration.applied.isEmpty, name)
            try expectRows(rows, in: fixture, name)
        }
    }

    @Test(
        "After a kill before the kept property list is complete, opening is refused until a release states the version",
        arguments: [false, true], [KeptList.missing, .cut(0), .cut(20), .cut(130)])
    func asks(isEncrypted: Bool, list: KeptList) throws {
        let states = try states(
            of: Self.statements, from: Self.old + Self.surroundings, .rollback, isEncrypted: isEncrypted)
        for (index, files) in states.enumerated() {
            let name: Comment = "behind \(index) statements"
            let rows = try rows(files, isEncrypted: isEncrypted)
            var fixture = try fixture(files, list)
            let before = try fixture.digest()
            for _ in 1...2 {
                let error = try #require(try storeError { try fixture.open() }, name)
                #expect(error.code == .recordedVersion, name)
                #expect(error.advice.contains("recordedVersion.assume"), name)
                #expect(try storeError { _ = try fixture.plan() }?.code == .recordedVersion, name)
                #expect(try fixture.digest() == before, name)
            }
            fixture.configuration.assumedVersion = 25
            #expect(try fixture.open().migration.from == 25, name)
            try expectRows(rows, in: fixture, name)
        }
    }

    // MARK: The upgrade to an encrypted file

    /// The statements that fill the new file, in which the rows get new keys and every BLOB is empty.
    private static let filling =
        ["chat", "contact", "draft"].map {
            "CREATE TABLE \($0)(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, content BLOB, name TEXT, body TEXT)"
        }
        + [
            "INSERT INTO chat(uid, content) VALUES ('ana', '')", "INSERT INTO chat(uid, content) VALUES ('', '')",
            "INSERT INTO contact(uid, name) VALUES ('ana', 'Äpfel & 梨')",
            "INSERT INTO contact(uid, name) VALUES ('bo', '')",
            "INSERT INTO draft(body) VALUES (hex(zeroblob(7000)))",
        ]

    @Test(
        "After a kill during the app's own encryption every row is kept, and an empty file is not a fresh install",
        arguments: Rest.allCases, [23, 25, 26])
    func keepsWhatIsThere(rest: Rest, version: Int) throws {
        // The app creates the file before it fills it.
        let states = try states(of: Self.filling, from: "CREATE TABLE t(x); DROP TABLE t", rest, isEncrypted: true)
        let empty = FolderState(files: ["local.db": Data()])
        for (index, files) in ([FolderState(files: [:]), empty] + states).enumerated() {
            let name: Comment = "state \(index)"
            let rows = try rows(files, isEncrypted: true)
            let fixture = try fixture(files, .version(version))
            let plan = Result { try fixture.plan() }
            let report = try fixture.open()
            #expect(report.migration.event != .created, name)
            #expect(report.migration.from == SchemaVersion(version), name)
            #expect(
                report.warnings.contains { $0.contains("there was no data to preserve") } == (rows.count == 0), name)
            if case .success(let plan) = plan { #expect(plan.schema.from == SchemaVersion(version), name) }
            #expect(try rows.missing(in: fixture.read { try UserRows($0) }) == [], name)
            #expect(try fixture.open().warnings.besidesLeases.isEmpty, name)
        }
    }

    @Test(
        "After a kill with all rows in memory and the plaintext file intact, every row is in its table",
        arguments: Rest.allCases.filter { $0 != .transaction }, [22, 23, 25, 26])
    func keepsPlaintext(rest: Rest, version: Int) throws {
        let files = try #require(
            try states(
                of: ["INSERT INTO chat(uid) VALUES ('later')"], from: Self.old + Self.surroundings, rest,
                isEncrypted: false
            ).last)
        let rows = try rows(files, isEncrypted: false)
        let fixture = try fixture(files, .version(version))
        #expect(try fixture.open().outcome == .encrypted)
        try expectRows(rows, in: fixture, "\(version)")
    }

    @Test(
        "A kept property list newer than the app is refused in every state, and a release of its version continues",
        arguments: [false, true])
    func refusesNewer(isEncrypted: Bool) throws {
        let states =
            try isEncrypted
            ? states(of: Self.filling, from: "", .rollback, isEncrypted: true)
            : states(of: Self.statements, from: Self.old, .rollback, isEncrypted: false)
        for (index, files) in states.enumerated() {
            let name: Comment = "state \(index)"
            let rows = try rows(files, isEncrypted: isEncrypted)
            var fixture = try fixture(files, .version(27))
            let before = try fixture.digest()
            #expect(try storeError { try fixture.open() }?.code == .downgrade, name)
            #expect(try storeError { _ = try fixture.plan() }?.code == .downgrade, name)
            #expect(try fixture.digest() == before, name)
            fixture.configuration.version = 27
            try fixture.open()
            #expect(try rows.missing(in: fixture.read { try UserRows($0) }) == [], name)
        }
    }
}
