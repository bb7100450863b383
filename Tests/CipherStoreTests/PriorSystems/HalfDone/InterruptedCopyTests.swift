internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The files of an app that ships a template, after a kill of the app's own upgrade.
struct InterruptedCopyTests {
    let fixture: PriorFixture

    init() throws {
        fixture = try PriorFixture("Template/NoteStore.json")
    }

    private func notes() throws -> [String] {
        try fixture.values("SELECT id || ' ' || coalesce(title, '-') FROM note ORDER BY id")
    }

    private static let allNotes = ["5 first", "9 -", "12 "]

    // MARK: Without a database

    /// The state of the copy on the disk.
    enum Rest: String, CaseIterable { case closed, log, journal, emptyDatabase, noTables, spentJournal }

    private func writeWholeCopy(_ rest: Rest) throws {
        try fixture.write(
            TemplateApp.temporary, journal: rest == .log ? "WAL" : "DELETE", unclosed: rest == .log || rest == .journal
        ) { connection in
            try TemplateApp.writeCopy(connection)
            guard rest == .journal else { return }
            // An uncommitted change, half of which is in the file.
            try connection.executeScript(
                "PRAGMA cache_size = 2; BEGIN; UPDATE category SET name = hex(zeroblob(3000)); UPDATE note SET title = hex(zeroblob(9000))"
            )
        }
        if rest == .emptyDatabase { try fixture.folder.write("", to: TemplateApp.database) }
        if rest == .noTables { try fixture.write { try $0.execute("PRAGMA user_version = 1") } }
        if rest == .spentJournal { try fixture.folder.write("", to: TemplateApp.database + "-journal") }
    }

    @Test(
        "A deleted database whose rows are in the copy is never a fresh install",
        arguments: Rest.allCases)
    func takesCopy(rest: Rest) throws {
        try writeWholeCopy(rest)
        let report = try fixture.open()
        #expect(report.outcome == .encrypted)
        #expect(report.warnings.contains { $0.contains("dbLocalTemp.db") })
        #expect(try notes() == Self.allNotes)
        #expect(try fixture.values("SELECT name FROM category WHERE code = 'work'") == ["Arbeit"])
        #expect(try fixture.folder.names.filter { $0.contains("Temp") } == [])
        #expect(try fixture.values("PRAGMA journal_mode") == [rest == .log ? "wal" : "delete"])
        #expect(try fixture.shape() == fixture.fresh().shape())
        #expect(try fixture.open().warnings.besidesLeases.isEmpty)
    }

    @Test("The plan reports the copy and changes nothing", arguments: [Rest.closed, .log, .emptyDatabase, .noTables])
    func plansCopy(rest: Rest) throws {
        try writeWholeCopy(rest)
        let before = try fixture.digest()
        let plan = try fixture.plan()
        #expect(plan.step == .encrypt)
        #expect(plan.path.hasSuffix("/dbLocal.db"))
        #expect(plan.schema.from == 2)
        #expect(plan.schema.notes.contains { $0.contains("dbLocalTemp.db") })
        #expect(try fixture.digest() == before)
    }

    @Test("The copy is also used if encryption is off")
    func takesCopyPlain() throws {
        var fixture = fixture
        fixture.configuration.encryption.isEnabled = false
        try fixture.write(TemplateApp.temporary) { try TemplateApp.writeCopy($0) }
        #expect(try fixture.open().outcome == .openedPlaintext)
        #expect(try fixture.folder.names == [TemplateApp.database])
        #expect(try notes() == Self.allNotes)
    }

    private func writeCopyWithDamagedLog() throws {
        try fixture.write(TemplateApp.temporary, unclosed: true) { connection in
            try TemplateApp.writeCopy(connection)
            try DamagedLog.commit("INSERT INTO tip VALUES ('x')", connection)
        }
        try DamagedLog.damage(fixture.folder.path(TemplateApp.temporary + "-wal"))
    }

    @Test("A copy with a damaged log is used, and copies of both are kept")
    func keepsDamagedLog() throws {
        try writeCopyWithDamagedLog()
        let log = try Data(contentsOf: fixture.folder.url.appending(path: TemplateApp.temporary + "-wal"))
        let report = try fixture.open()
        #expect(report.outcome == .encrypted)
        #expect(report.warnings.contains { $0.contains("dbLocal.db-damaged-wal") }, "\(report.warnings)")
        #expect(try notes() == Self.allNotes)
        #expect(try Data(contentsOf: fixture.folder.url.appending(path: "dbLocal.db-damaged-wal")) == log)
        #expect(try fixture.folder.names.filter { $0.contains("Temp") } == [])
        #expect(try fixture.open().warnings.contains { $0.contains("dbLocal.db-damaged-wal") })
    }

    @Test("A copy with a damaged log is refused if damage is to be refused")
    func refusesDamagedLog() throws {
        var fixture = fixture
        fixture.configuration.encryption.onDamage = .refuse
        try writeCopyWithDamagedLog()
        let before = try fixture.digest()
        #expect(try storeError { try fixture.open() }?.code == .corrupt)
        #expect(try fixture.digest() == before)
    }

    @Test("A copy with a damaged log stays beside the database, and is reported")
    func keepsCopyWithDamagedLog() throws {
        try fixture.write { connection in
            try TemplateApp.writeDatabase(connection, version: 2)
            try connection.executeScript("INSERT INTO tip VALUES ('x'), ('x')")
        }
        try writeCopyWithDamagedLog()
        let log = try Data(contentsOf: fixture.folder.url.appending(path: TemplateApp.temporary + "-wal"))
        let report = try fixture.open()
        #expect(report.warnings.contains { $0.contains("was not removed") && $0.contains("-wal") }, "\(report)")
        #expect(try Data(contentsOf: fixture.folder.url.appending(path: TemplateApp.temporary + "-wal")) == log)
    }

    @Test("The name of the copy can be configured")
    func takesNamedCopy() throws {
        var fixture = fixture
        guard case .template(var template) = fixture.configuration.schema else { return }
        template.temporary = "upgrade.sqlite"
        fixture.configuration.schema = .template(template)
        try fixture.write("upgrade.sqlite") { try TemplateApp.writeCopy($0) }
        #expect(try fixture.open().outcome == .encrypted)
        #expect(try notes() == Self.allNotes)
    }

    /// Cases that are refused although there is no database.
    @Test("An unreadable copy is refused, and nothing is created", arguments: ["encrypted", "damaged", "cut"])
    func refusesCopy(kind: String) throws {
        try fixture.write(TemplateApp.temporary) { connection in
            if kind == "encrypted" { try connection.setKey(TestKeys.raw(3), settings: CipherSettings()) }
            try TemplateApp.writeCopy(connection)
        }
        let path = fixture.folder.path(TemplateApp.temporary)
        let file = try FileHandle(forUpdating: URL(filePath: path))
        if kind == "cut" { try file.truncate(atOffset: 8192) }
        if kind == "damaged" {
            try file.seek(toOffset: 110)
            try file.write(contentsOf: Data(repeating: 0xa5, count: 3000))
        }
        try file.close()
        let before = try fixture.digest()
        for attempt in [{ _ = try fixture.plan() }, { try fixture.open() }] {
            let error = try storeError(from: attempt)
            #expect(error?.code == .corrupt)
            #expect(error?.path?.hasSuffix("/dbLocalTemp.db") == true)
        }
        #expect(try fixture.digest() == before)
    }

    @Test("A refused upgrade leaves the copy under its name")
    func refusesBeforeTaking() throws {
        var fixture = fixture
        fixture.configuration.version = 1
        try fixture.write(TemplateApp.temporary) { try TemplateApp.writeCopy($0) }
        let before = try fixture.digest()
        #expect(try storeError { try fixture.open() }?.code == .downgrade)
        #expect(try fixture.digest() == before)
    }

    @Test("The log of the deleted database is not applied to the copy, which already has its content")
    func dropsLogOfDeleted() throws {
        try fixture.write(journal: "WAL", unclosed: true) { try TemplateApp.writeDatabase($0, version: 2) }
        try FileManager.default.removeItem(atPath: fixture.database)
        try fixture.write(TemplateApp.temporary) { try TemplateApp.writeCopy($0) }
        #expect(try fixture.plan().step == .encrypt)
        #expect(try fixture.open().outcome == .encrypted)
        #expect(try notes() == Self.allNotes)
        #expect(try fixture.folder.names == [TemplateApp.database])
    }

    @Test("A copy without a table is neither used as a database nor removed", arguments: [true, false])
    func ignoresEmptyCopy(hasHeader: Bool) throws {
        if hasHeader {
            try fixture.write(TemplateApp.temporary) { try $0.execute("PRAGMA user_version = 3") }
        } else {
            try fixture.folder.write("", to: TemplateApp.temporary)
        }
        let report = try fixture.open()
        #expect(report.outcome == .created)
        #expect(report.warnings.contains { $0.contains("was not removed") } == hasHeader)
        #expect(try fixture.folder.names == [TemplateApp.database, TemplateApp.temporary])
    }

    @Test("A symbolic link with the copy's name is left alone, and so is its target", arguments: [true, false])
    func leavesLink(hasDatabase: Bool) throws {
        if hasDatabase { try fixture.write { try TemplateApp.writeDatabase($0, version: 2) } }
        try fixture.write("mine.db") { try TemplateApp.writeCopy($0, notes: 2) }
        let link = fixture.folder.path(TemplateApp.temporary)
        let target = fixture.folder.path("mine.db")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
        let before = try LegacyFile(copying: target).startsAsPlaintext
        #expect(try fixture.plan().schema.notes.contains { $0.contains("symbolic link") })
        let report = try fixture.open()
        #expect(report.outcome == (hasDatabase ? .encrypted : .created))
        #expect(report.warnings.contains { $0.contains("dbLocalTemp.db") && $0.contains("symbolic link") })
        #expect(try fixture.folder.names == [TemplateApp.database, TemplateApp.temporary, "mine.db"])
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == target)
        #expect(try before && LegacyFile(copying: target).startsAsPlaintext)
    }

    @Test(
        "If the key is unavailable the copy keeps its name, and the run that succeeds reports it",
        arguments: Rest.allCases)
    func asksForKeyFirst(rest: Rest) throws {
        try writeWholeCopy(rest)
        let before = try fixture.digest()
        var options = ConversionOptions()
        options.busyTimeout = .zero
        let opening = try StoreOpening(
            configuration: fixture.configuration, directory: fixture.folder.url.path(percentEncoded: false),
            provider: FileKeyProvider(path: fixture.folder.path("nosuch.key")), options: options)
        #expect(try storeError { try opening.run() }?.code == .keyUnavailable)
        #expect(try fixture.digest() == before)
        #expect(try fixture.open().warnings.contains { $0.contains("was used instead") })
        #expect(try notes() == Self.allNotes)
    }

    // MARK: With a database

    @Test(
        "Beside a database a half-filled copy is not used, and is removed if all its rows are in the database",
        arguments: [0, 2, 3])
    func removesCopy(notes count: Int) throws {
        try fixture.write { try TemplateApp.writeDatabase($0, version: 1) }
        try fixture.write(TemplateApp.temporary) { try TemplateApp.writeCopy($0, notes: count) }
        let before = try fixture.digest()
        #expect(try fixture.plan().schema.notes.contains { $0.contains("dbLocalTemp.db") })
        #expect(try fixture.digest() == before)
        #expect(try fixture.open().warnings.count { $0.contains("was removed") } == 1)
        #expect(try notes() == Self.allNotes)
        #expect(try fixture.folder.names == [TemplateApp.database])
        #expect(try fixture.open().warnings.besidesLeases.isEmpty)
    }

    @Test(
        "A copy with a row that the database lacks stays beside it, and is reported",
        arguments: [
            "INSERT INTO note (id, title) VALUES (77, 'only here')", "UPDATE note SET title = 'FIRST' WHERE id = 5",
            "UPDATE note SET title = 12 WHERE id = 12", "CREATE TABLE extra (a); INSERT INTO extra VALUES (NULL)",
            "ALTER TABLE note ADD COLUMN own; UPDATE note SET own = 1",
        ])
    func keepsCopy(change: String) throws {
        try fixture.write { try TemplateApp.writeDatabase($0, version: 2) }
        try FileManager.default.copyItem(atPath: fixture.database, toPath: fixture.folder.path(TemplateApp.temporary))
        let connection = try Connection(path: fixture.folder.path(TemplateApp.temporary), mode: .readWrite)
        try connection.executeScript(text: change)
        connection.close()
        let report = try fixture.open()
        #expect(report.outcome == .encrypted)
        #expect(report.warnings.contains { $0.contains(fixture.folder.path(TemplateApp.temporary).suffix(20)) })
        #expect(try fixture.folder.names == [TemplateApp.database, TemplateApp.temporary])
        #expect(try notes() == Self.allNotes)
    }

    @Test(
        "A copy whose damaged log holds commits that SQLite does not read is neither removed nor considered older",
        arguments: ["WAL", "DELETE"])
    func keepsCopyWithLostCommits(journal: String) throws {
        var fixture = fixture
        try fixture.write(journal: journal) { try TemplateApp.writeDatabase($0, version: 1) }
        try fixture.write(TemplateApp.temporary, journal: "WAL", unclosed: true) { connection in
            try connection.executeScript("PRAGMA wal_autocheckpoint = 0")
            try TemplateApp.writeCopy(connection)
            _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
            for id in 71...73 { try connection.execute("INSERT INTO note (id, title) VALUES (\(id), 'unread')") }
        }
        let names = [TemplateApp.temporary, TemplateApp.temporary + "-wal"]
        func files() throws -> [Data] {
            try names.map { try Data(contentsOf: URL(filePath: fixture.folder.path($0))) }
        }
        var log = try files()[1]
        log[32 + 24 + 100] ^= 1
        try log.write(to: URL(filePath: fixture.folder.path(names[1])))
        let before = try files()
        if journal == "WAL" {
            let folder = try fixture.digest()
            for attempt in [{ _ = try fixture.plan() }, { try fixture.open() }] {
                let error = try #require(try storeError(from: attempt))
                #expect(error.code == .migration && error.advice.contains("template.leftover"), "\(error)")
                #expect(error.detail.contains("whose log is damaged"), "\(error)")
            }
            #expect(try fixture.digest() == folder)
            guard case .template(var template) = fixture.configuration.schema else { return }
            template.leftover = .database
            fixture.configuration.schema = .template(template)
        }
        let warnings = try fixture.open().warnings
        #expect(warnings.contains { $0.contains("was not removed: the -wal contains transactions") }, "\(warnings)")
        #expect(try files() == before)
        #expect(try notes() == Self.allNotes)
    }

    @Test(
        "A file that has the copy's name, but other tables, views or triggers than the template, stays and is reported",
        arguments: [
            "CREATE TABLE outbox(id INTEGER PRIMARY KEY, body TEXT); CREATE VIEW v AS SELECT 1;",
            "\(TemplateApp.template(2)) CREATE VIEW v AS SELECT 1;",
            "\(TemplateApp.template(2)) CREATE TRIGGER t AFTER INSERT ON note BEGIN SELECT 1; END;",
        ])
    func keepsForeignFile(script: String) throws {
        try fixture.write { try TemplateApp.writeDatabase($0, version: 2) }
        try fixture.write(TemplateApp.temporary) { try $0.executeScript(text: script) }
        #expect(
            try fixture.open().warnings.contains {
                $0.contains("dbLocalTemp.db") && $0.contains("neither the template nor the database has")
            })
        #expect(try fixture.folder.names == [TemplateApp.database, TemplateApp.temporary])
        #expect(try notes() == Self.allNotes)
    }

    @Test("A template that has the copy's name is refused and stays", arguments: [true, false])
    func keepsTemplate(hasDatabase: Bool) throws {
        var fixture = fixture
        if hasDatabase { try fixture.write { try TemplateApp.writeDatabase($0, version: 2) } }
        try fixture.write(TemplateApp.temporary) { try $0.executeScript(text: TemplateApp.template(3)) }
        fixture.configuration.schema = .template(.init(file: fixture.folder.path(TemplateApp.temporary)))
        let before = try fixture.digest()
        for attempt in [{ _ = try fixture.plan() }, { try fixture.open() }] {
            let error = try storeError(from: attempt)
            #expect(error?.code == .configuration)
            #expect(error?.description.contains("template.temporary") == true)
        }
        #expect(try fixture.digest() == before)
    }

    @Test("A copy that cannot be compared stays, and is reported")
    func keepsUnreadable() throws {
        try fixture.write { try TemplateApp.writeDatabase($0, version: 2) }
        try fixture.folder.write(
            "no database at all, but long enough to be looked at by its header, which is 100 bytes long at the least",
            to: TemplateApp.temporary)
        #expect(try fixture.open().warnings.contains { $0.contains("dbLocalTemp.db") })
        #expect(try fixture.folder.names == [TemplateApp.database, TemplateApp.temporary])
    }

    @Test("An upgrade whose template is missing leaves the file unchanged")
    func keepsFileOnFailure() throws {
        var fixture = fixture
        try fixture.write { try TemplateApp.writeDatabase($0, version: 2) }
        let before = try fixture.digest()
        fixture.configuration.schema = .template(.init(file: fixture.folder.path("nosuch.db")))
        #expect(try storeError { try fixture.open() }?.code == .missingFile)
        #expect(try fixture.digest() == before)
    }
}
