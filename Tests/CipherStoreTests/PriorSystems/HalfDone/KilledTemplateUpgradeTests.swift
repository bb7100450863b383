internal import CipherErrors
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The upgrade of an app with a template, killed after each of its statements and file operations.
struct KilledTemplateUpgradeTests {
    /// The state of the user's database on the disk.
    enum Database: String, Sendable, CaseIterable {
        /// In rollback mode.
        case rollback
        /// In WAL mode and closed.
        case closed
        /// In WAL mode with some of its rows in the log.
        case log
        /// In WAL mode with everything in the log.
        case logAlone

        var hasLog: Bool { self == .log || self == .logAlone }
    }

    /// How the app writes the copy.
    enum Copy: String, Sendable, CaseIterable {
        case rollback
        /// In one transaction.
        case transaction
        /// In WAL mode, closed at the end.
        case closed
        /// In WAL mode, and still open when the copy is renamed.
        case log
    }

    struct Upgrade: Sendable, CustomTestStringConvertible {
        let from: Int
        let database: Database
        let copy: Copy
        var testDescription: String { "\(from) to \(from + 1), \(database), copy: \(copy)" }

        static let all = [1, 2].flatMap { from in
            Database.allCases.flatMap { database in
                Copy.allCases.map { Upgrade(from: from, database: database, copy: $0) }
            }
        }

        /// Additions to the database and the template of `TemplateApp`.
        ///
        /// The template of the current version has its own trigger, view, foreign key and seeds.
        private func surroundings(_ version: Int) -> String {
            guard version < 3 else { return "" }
            return """
                CREATE TABLE link (note INTEGER REFERENCES note(id) ON DELETE CASCADE, name TEXT);
                CREATE TABLE count (n INTEGER);
                CREATE TRIGGER linked AFTER INSERT ON link BEGIN UPDATE note SET title = title WHERE id = new.note; END;
                CREATE VIEW linkedNotes AS SELECT title, link.name FROM note JOIN link ON link.note = note.id;
                """
        }

        func template(_ version: Int) -> String { TemplateApp.template(version) + surroundings(version) }

        func writeDatabase(_ connection: Connection) throws {
            try connection.executeScript(text: template(from))
            try TemplateApp.writeUserRows(connection, version: from)
            if from == 1 { try connection.execute("INSERT INTO link VALUES (5, 'a'), (12, NULL)") }
        }

        /// The rows that are added after the other rows were copied from the log into the file.
        let later = "INSERT INTO note (id, title) VALUES (70, hex(zeroblob(6000))), (71, 'later')"

        /// The statements of the upgrade, in order; the user's rows replace the template's.
        var statements: [String] {
            let columns = from == 1 ? "id, title" : "id, title, body"
            let notes = [5, 9, 12, 70, 71].map {
                "INSERT INTO note (\(columns)) SELECT \(columns) FROM user.note WHERE id = \($0)"
            }
            let category = from == 1 ? "code, name" : "code, name, position"
            let categories = ["work", "trip"].map {
                "INSERT OR REPLACE INTO category (\(category)) SELECT \(category) FROM user.category WHERE code = '\($0)'"
            }
            return notes + categories + (from == 1 ? ["INSERT INTO link SELECT * FROM user.link"] : [])
        }
    }

    /// One kill.
    struct State {
        let name: String
        let files: FolderState
        /// Whether the files do not show which one is current, so that the app must decide.
        var asks = false
    }

    private static let (database, copy) = (TemplateApp.database, TemplateApp.temporary)

    private static func configuration() throws -> Configuration {
        try Configuration(contentsOf: Repository.examples.appending(path: "Template/NoteStore.json"))
    }

    /// The states in order, and the user's rows as plain SQLite reads them in the first state.
    private func states(of upgrade: Upgrade) throws -> (states: [State], rows: UserRows) {
        let scratch = try TemporaryFolder(inMemory: true)
        let path = scratch.path(Self.database)
        let user = try Connection(path: path, mode: .create)
        defer { user.close() }
        if upgrade.database == .logAlone { _ = try user.value(String.self, "PRAGMA journal_mode = WAL") }
        try user.executeScript(text: upgrade.database == .logAlone ? "PRAGMA wal_autocheckpoint = 0" : "")
        try upgrade.writeDatabase(user)
        if upgrade.database == .closed || upgrade.database == .log {
            _ = try user.value(String.self, "PRAGMA journal_mode = WAL")
        }
        try user.executeScript(text: upgrade.later)
        let rows = try UserRows(user, without: ["Records"])
        if !upgrade.database.hasLog { user.close() }
        let database = try FolderState(scratch)
        user.close()

        let copyFolder = try TemporaryFolder(inMemory: true)
        try LegacyFile.write(copyFolder.path(Self.copy), script: upgrade.template(upgrade.from + 1))
        let bytes = try #require(try FolderState(copyFolder).files[Self.copy])
        var states = [State(name: "before the upgrade", files: database)]
        if upgrade.copy == .rollback {
            for size in [0, 1, 100, 4096, 5000, bytes.count / 2, bytes.count - 1] {
                var part = database
                part.files[Self.copy] = bytes.prefix(size)
                states.append(State(name: "behind \(size) bytes of the template", files: part))
            }
        }

        let connection = try Connection(path: copyFolder.path(Self.copy), mode: .readWrite)
        defer { connection.close() }
        try connection.execute("ATTACH \(path) AS user KEY ''")
        if upgrade.copy == .closed || upgrade.copy == .log {
            _ = try connection.value(String.self, "PRAGMA main.journal_mode = WAL")
        }
        // Pages are written to the file before the transaction ends.
        if upgrade.copy == .transaction { try connection.executeScript("PRAGMA cache_size = 1; BEGIN") }
        states.append(State(name: "behind the template", files: try database.with(FolderState(copyFolder))))
        for (index, statement) in upgrade.statements.enumerated() {
            try connection.executeScript(text: statement)
            let files = try database.with(FolderState(copyFolder))
            states.append(State(name: "behind \(index + 1) statements", files: files))
        }
        if upgrade.copy == .transaction { try connection.execute("COMMIT") }
        if upgrade.copy != .log { connection.close() }
        let whole = try FolderState(copyFolder)
        states.append(State(name: "behind the last statement", files: database.with(whole)))

        let log = Self.database + "-wal"
        if upgrade.database.hasLog {
            states.append(
                State(name: "the database deleted, its log not", files: database.without(Self.database).with(whole)))
            states.append(
                State(
                    name: "the log deleted, its database not", files: database.without(log).with(whole),
                    asks: upgrade.database == .log))
        }
        states.append(State(name: "the database deleted", files: whole))
        let renamed = whole.renaming(Self.copy, to: Self.database)
        if upgrade.copy == .log {
            states.append(State(name: "the copy renamed, its log not", files: renamed, asks: true))
            states.append(State(name: "renamed", files: renamed.renaming(Self.copy + "-wal", to: log)))
        } else {
            states.append(State(name: "renamed", files: renamed))
        }
        return (states, rows)
    }

    @Test(
        "After a kill at any statement every row is in its table, or the app must decide before anything is recorded",
        arguments: Upgrade.all)
    func recovers(upgrade: Upgrade) throws {
        let (states, rows) = try states(of: upgrade)
        try #require(rows.count > 8)
        for state in states {
            var fixture = try PriorFixture(state.files, Self.configuration())
            let name: Comment = "\(state.name)"
            if state.asks {
                let before = try fixture.digest()
                for _ in 1...2 {
                    let error = try #require(try storeError { try fixture.open() }, name)
                    #expect(error.description.contains("template.leftover"), name)
                    #expect(try storeError { _ = try fixture.plan() }?.code == error.code, name)
                    #expect(try fixture.digest() == before, name)
                }
                fixture.configuration = try answering(fixture.configuration, .copy)
            }
            let report = try fixture.open()
            #expect(report.outcome == .encrypted, name)
            let hasReplaced = report.warnings.contains {
                $0.contains("dbLocalTemp.db replaced dbLocal.db, as template.leftover specifies")
            }
            let hadBoth = [TemplateApp.database, TemplateApp.temporary].allSatisfy { state.files.files[$0] != nil }
            #expect(hasReplaced == (state.asks && hadBoth), "\(state.name): \(report.warnings)")
            let kept = try fixture.read { try UserRows($0) }
            #expect(rows.missing(in: kept) == [], name)
            #expect(try fixture.values("PRAGMA foreign_key_check") == [], name)
            #expect(try fixture.values("SELECT value FROM Records WHERE name = 'DBVersion'") == ["3"], name)
        }
    }

    private func answering(
        _ configuration: Configuration, _ answer: SchemaTemplate.Leftover
    ) throws -> Configuration {
        var configuration = configuration
        guard case .template(var template) = configuration.schema else { return configuration }
        template.leftover = answer
        configuration.schema = .template(template)
        return configuration
    }

    @Test(
        "If the app chooses the database, the copy and its log stay, and are reported",
        arguments: Upgrade.all.filter { $0.database == .log && $0.copy == .closed || $0.copy == .log })
    func keepsDatabase(upgrade: Upgrade) throws {
        for state in try states(of: upgrade).states where state.asks {
            var fixture = try PriorFixture(state.files, Self.configuration())
            fixture.configuration = try answering(fixture.configuration, .database)
            let name: Comment = "\(state.name)"
            let report = try fixture.open()
            #expect(report.warnings.contains { $0.contains(Self.copy) && $0.contains("was not removed") }, name)
            let files = try FolderState(fixture.folder).files
            for file in state.files.files.keys where file.hasPrefix(Self.copy) {
                // SQLite itself copies a log into the database beside it.
                let isMerged = file == Self.copy + "-wal" && state.files.files[Self.copy] != nil
                #expect(isMerged || files[file] != nil, name)
            }
            #expect(try fixture.open().outcome == .opened, name)
        }
    }
}
