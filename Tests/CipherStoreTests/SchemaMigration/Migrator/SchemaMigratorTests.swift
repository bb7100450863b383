internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct SchemaMigratorTests {
    static let wanted = Configuration.declaring(["chat": ["id": "INTEGER PRIMARY KEY", "uid": "TEXT"]])
    static let older =
        "CREATE TABLE chat(id INTEGER PRIMARY KEY); INSERT INTO chat VALUES (5); PRAGMA user_version = 99"

    // MARK: Nothing to do

    @Test(
        "The schema migration writes nothing at the second launch: every file stays the same, byte for byte",
        arguments: MigrationFixture.Form.all)
    func writesNothingTwice(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.older + "; CREATE TABLE extra(x)")
        try fixture.launch(Self.wanted, recorded: 23)
        let before = try fixture.bytes()
        let report = try fixture.launch(Self.wanted, recorded: 23)
        #expect(report.applied.isEmpty)
        #expect(report.event == nil)
        #expect(!report.isUpdate)
        #expect(report.from == 25)
        #expect(report.withheld.map(\.table) == ["extra"])
        #expect(try fixture.bytes() == before)
    }

    @Test("The schema migration does not wait for another connection's write lock if there is nothing to do")
    func needsNoLock() throws {
        let fixture = try MigrationFixture()
        try fixture.launch(Self.wanted)
        let writer = try fixture.open()
        try writer.transaction(.immediate) {
            let report = try fixture.launch(Self.wanted)
            #expect(report.applied.isEmpty)
        }
    }

    @Test(
        "The schema migration stamps a database whose app manages its own schema", arguments: MigrationFixture.Form.all
    )
    func stampsUnmanaged(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.older)
        let configuration = Configuration(databaseName: "app.db", version: 3)
        let report = try fixture.launch(configuration, recorded: 2)
        #expect(report.applied.map(\.kind) == [.stamp])
        #expect(report.event == .adopted)
        #expect(try fixture.launch(configuration, recorded: 2).applied.isEmpty)
    }

    // MARK: Versions

    @Test("The schema migration trusts user_version only after it has recorded a version there")
    func changesAuthority() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.older)
        #expect(try fixture.launch(Self.wanted, recorded: SchemaVersion("24.5")).from == SchemaVersion("24.5"))
        #expect(try fixture.launch(Self.wanted, recorded: 99).from == 25)
        let entry = try #require(try fixture.with(.readOnly) { try HistoryTable.latestEvents($0).first })
        #expect(entry.event == "adopted")
        #expect(entry.fromVersion == "24.5")
        #expect(entry.toVersion == "25")
        #expect(entry.checksum?.count == 16)
        #expect(entry.detail == "addColumn chat.uid; stamp")
        #expect(entry.engine?.contains(Engine.current.sqliteVersion) == true)
        #expect(entry.appliedAt.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
    }

    @Test("The schema migration refuses a newer database as a downgrade and changes nothing", arguments: [false, true])
    func refusesDowngrade(isAdopted: Bool) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "WAL"), Self.older)
        if isAdopted { try fixture.launch(.declaring([:], version: 26), recorded: 23) }
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(Self.wanted, recorded: 26) }
        #expect(error?.code == .downgrade)
        #expect(error?.detail.contains("26") == true && error?.detail.contains("25") == true)
        let planning = try storeError {
            try fixture.with(.readOnly) { try SchemaMigrator(configuration: Self.wanted).plan($0, recorded: 26) }
        }
        #expect(planning?.code == .downgrade)
        #expect(try fixture.bytes()["app.db"] == before["app.db"])
    }

    @Test("The schema migration refuses a version that user_version cannot hold", arguments: [-1, Int(Int32.max) + 1])
    func refusesImpossibleVersion(version: Int) throws {
        let fixture = try MigrationFixture()
        let error = try storeError { try fixture.launch(.declaring(["a": ["x": ""]], version: SchemaVersion(version))) }
        #expect(error?.code == .configuration)
    }

    @Test("The schema migration repairs a database with the right version and the wrong schema, and records this")
    func repairs() throws {
        let fixture = try MigrationFixture()
        try fixture.launch(Self.wanted)
        try fixture.with { try $0.execute("DROP TABLE chat") }
        let report = try fixture.launch(Self.wanted)
        #expect(report.applied.map(\.kind) == [.createTable])
        #expect(report.event == .migrated)
        #expect(!report.isUpdate)
        let detail = try fixture.with { try HistoryTable.latestEvents($0).first?.detail }
        #expect(detail?.hasPrefix("createTable chat; ") == true)
        #expect(report.findings.map(\.severity) == [.warning], "version 25 is recorded, and no table was there")
    }

    @Test("The schema migration does not treat a database without tables as a fresh install if a version is recorded")
    func noticesVanishedTables() throws {
        let fixture = try MigrationFixture()
        let report = try fixture.launch(Self.wanted, recorded: 23)
        #expect(report.event == .adopted)
        #expect(report.findings.map(\.severity) == [.warning])
        let fresh = try MigrationFixture()
        #expect(try fresh.launch(Self.wanted, recorded: .zero).event == .created)
    }

    // MARK: Other processes

    @Test(
        "The schema migration plans again under the write lock if another process was faster",
        arguments: [true, false])
    func plansAgain(isEncrypted: Bool) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: isEncrypted, journalMode: "WAL"), Self.older)
        var asked = 0
        let report = try fixture.with { connection in
            try SchemaMigrator(configuration: Self.wanted).migrate(connection) {
                asked += 1
                if asked == 1 { try fixture.launch(Self.wanted, recorded: 23) }
                return 23
            }
        }
        #expect(asked == 1)
        #expect(report.applied.isEmpty)
        #expect(report.from == 25)
        #expect(try fixture.with { try HistoryTable.latestEvents($0).count } == 1)
    }

    @Test("The schema migration is refused if another process made the database newer in between")
    func noticesNewerVersion() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "WAL"), Self.older)
        let error = try storeError {
            try fixture.with { connection in
                try SchemaMigrator(configuration: Self.wanted).migrate(connection) {
                    try fixture.launch(.declaring(["b": ["x": ""]], version: 30), recorded: 23)
                    return 23
                }
            }
        }
        #expect(error?.code == .downgrade)
    }

    @Test("The schema migration reports busy while another connection writes")
    func saysBusy() throws {
        let fixture = try MigrationFixture()
        let writer = try fixture.open()
        try writer.transaction(.immediate) {
            let error = try storeError { try fixture.launch(Self.wanted) }
            #expect(error?.code == .busy)
        }
    }

    @Test("The schema migration refuses to run inside the caller's transaction")
    func refusesTransaction() throws {
        let fixture = try MigrationFixture()
        let error = try storeError {
            try fixture.with { connection in
                try connection.transaction {
                    try SchemaMigrator(configuration: Self.wanted).migrate(connection) { nil }
                }
            }
        }
        #expect(error?.code == .migration)
    }

    // MARK: Failures

    @Test(
        "The schema migration leaves the contents unchanged if an operation fails halfway",
        arguments: MigrationFixture.Form.all)
    func rollsBack(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.older)
        let before = try fixture.content()
        let failing = FixedSource(operations: [
            Plan.Operation(.createTable, table: "new", sql: [#"CREATE TABLE "new" (x)"#], reason: "first"),
            Plan.Operation(
                .addColumn, table: "chat", column: "y", sql: ["DELETE FROM chat", "SELECT 1 FROM nosuch"],
                reason: "second"),
        ])
        let error = try storeError {
            try fixture.with { connection in
                try connection.execute("PRAGMA foreign_keys = ON")
                defer { #expect((try? connection.value(Bool.self, "PRAGMA foreign_keys")) == true) }
                return try SchemaMigrator(version: 25, source: failing).migrate(connection) { 23 }
            }
        }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("addColumn chat.y") == true)
        #expect(error?.underlying?.sql == "SELECT 1 FROM nosuch")
        #expect(try fixture.content() == before)
    }

    @Test("The schema migration names a new column's CHECK that the rows violate, and changes nothing")
    func reportsBrokenCheck() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.older)
        let before = try fixture.bytes()
        let error = try storeError {
            try fixture.launch(
                .declaring([
                    "a": ["x": ""], "chat": ["id": "INTEGER PRIMARY KEY", "n": "INTEGER DEFAULT 0 CHECK (n > 3)"],
                ]))
        }
        #expect(error?.detail.contains("of chat would violate CHECK (n > 3)") == true)
        #expect(try fixture.bytes() == before)
    }

    @Test("The schema migration rolls back if the plan for the result is not empty")
    func verifies() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.older)
        let before = try fixture.content()
        let idle = FixedSource(operations: [
            Plan.Operation(.createTable, table: "new", sql: ["SELECT 1"], reason: "does nothing")
        ])
        let error = try storeError {
            try fixture.with { try SchemaMigrator(version: 25, source: idle).migrate($0) { nil } }
        }
        #expect(error?.detail.contains("createTable new") == true)
        #expect(try fixture.content() == before)
    }

    @Test(
        "The schema migration keeps a foreign object with the history's name, and reports it",
        arguments: [
            "CREATE TABLE cipherstore_history(x)", "CREATE TABLE CipherStore_History(id TEXT, event TEXT)",
            "CREATE VIEW cipherstore_history AS SELECT 1",
            "CREATE TABLE a(x); CREATE INDEX cipherstore_history ON a(x)",
            "CREATE VIRTUAL TABLE cipherstore_history USING fts4(event)",
        ])
    func refusesForeignHistory(script: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), script)
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(Self.wanted) }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("cipherstore_history") == true)
        #expect(try storeError { try fixture.with { try HistoryTable.isStampedPlaintext($0) } } != nil)
        #expect(try storeError { try fixture.with { try HistoryTable.append(.encrypted, in: $0) } } != nil)
        #expect(try fixture.bytes() == before)
    }

    // MARK: Reports

    @Test("The schema migration encodes its report and its plan as JSON")
    func encodes() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.older)
        let plan = try fixture.with(.readOnly) {
            try SchemaMigrator(configuration: Self.wanted).plan($0, recorded: nil)
        }
        let json = try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(plan)) as? [String: Any])
        #expect(json["from"] is NSNull)
        #expect(json["to"] as? String == "25")
        #expect((json["operations"] as? [[String: Any]])?.first?["kind"] as? String == "addColumn")
        let report = try fixture.launch(Self.wanted, recorded: SchemaVersion("23.1"))
        #expect(try JSONDecoder().decode(MigrationReport.self, from: JSONEncoder().encode(report)) == report)
    }
}

/// A source that always requests the same changes.
struct FixedSource: SchemaSource {
    var operations: [Plan.Operation]

    func plan(for state: DatabaseState) -> Plan {
        Plan(from: state.recorded, to: 25, operations: operations)
    }
}
