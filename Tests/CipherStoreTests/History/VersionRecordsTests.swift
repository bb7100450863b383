internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The version in `user_version` and the one in the history, if other code writes one of them.
struct VersionRecordsTests {
    /// An app in which each step from 2 on adds a row, which shows whether a step ran twice or never.
    private struct App {
        let folder: TemporaryFolder
        var isEncrypted = true
        var recordedVersion = RecordedVersion.userVersion

        init(isEncrypted: Bool = true) throws {
            folder = try TemporaryFolder()
            self.isEncrypted = isEncrypted
        }

        func configuration(_ version: Int) -> Configuration {
            var configuration = Configuration(
                databaseName: "app.db", version: .init(version), recordedVersion: recordedVersion,
                schema: .steps(
                    MigrationSteps(
                        baseline: .sql(["CREATE TABLE t(step)", "CREATE TABLE log(a)"]),
                        updates: version < 2
                            ? []
                            : (2...version).map { number in
                                .init(
                                    .init(number),
                                    .sql(["ALTER TABLE log ADD COLUMN c\(number)", "INSERT INTO t VALUES (\(number))"]))
                            })))
            configuration.encryption.isEnabled = isEncrypted
            configuration.encryption.whenDisabled = .decrypt
            return configuration
        }

        func opening(_ version: Int) throws -> StoreOpening {
            try StoreOpening(
                configuration: configuration(version), directory: folder.url.path(percentEncoded: false),
                provider: TestKeys.provider())
        }

        @discardableResult
        func open(_ version: Int) throws -> OpenReport { try opening(version).run().report }

        func plan(_ version: Int) throws -> Plan { try opening(version).plan().schema }

        func with<Result>(_ body: (Connection) throws -> Result) throws -> Result {
            let connection = try Connection(path: folder.path("app.db"), mode: .readWrite)
            defer { connection.close() }
            if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            return try body(connection)
        }

        func run(_ script: String) throws { try with { try $0.executeScript(text: script) } }

        func steps() throws -> [Int] { try with { try $0.values(Int.self, "SELECT step FROM t ORDER BY rowid") } }

        func userVersion() throws -> Int? { try with { try $0.value(Int.self, "PRAGMA user_version") } }

        func events() throws -> [String] { try with { try HistoryTable.latestEvents($0).reversed().map(\.event) } }
    }

    // MARK: Lowered versions

    @Test(
        "A user_version that other code lowered is reported and corrected, and no step runs again",
        arguments: [true, false])
    func lowered(isEncrypted: Bool) throws {
        let app = try App(isEncrypted: isEncrypted)
        try app.open(4)
        let events = try app.events()
        try app.run("PRAGMA user_version = 1")
        let plan = try app.plan(4)
        #expect(plan.from == 4)
        #expect(plan.operations.map(\.sql) == [["PRAGMA user_version = 4"]])
        #expect(plan.findings.warnings.count == 1)
        let report = try app.open(4)
        #expect(report.launch == .unchanged)
        #expect(report.warnings == plan.findings.warnings)
        #expect(report.warnings.besidesLeases.first?.contains("user_version") == true)
        #expect(try app.steps() == [2, 3, 4])
        #expect(try app.userVersion() == 4)
        // Code that lowers the version at every launch does not make the history grow.
        #expect(try app.events() == events)
        #expect(try app.open(4).warnings.besidesLeases.isEmpty)
        try app.run("PRAGMA user_version = 2")
        #expect(try app.open(6).warnings.besidesLeases.count == 1)
        #expect(try app.steps() == [2, 3, 4, 5, 6])
        #expect(try app.userVersion() == 6)
    }

    @Test(
        "An older release refuses a newer database even if its user_version was lowered", arguments: [true, false])
    func loweredBelowTheApp(isEncrypted: Bool) throws {
        let app = try App(isEncrypted: isEncrypted)
        try app.open(4)
        for number in [0, 1, -7] {
            try app.run("PRAGMA user_version = \(number)")
            let before = try FolderDigest(app.folder.url)
            #expect(try storeError { try app.open(2) }?.code == .downgrade)
            #expect(try storeError { try app.plan(2) }?.code == .downgrade)
            #expect(try storeError { try app.opening(2).repair() }?.code == .downgrade)
            #expect(try FolderDigest(app.folder.url) == before)
        }
    }

    @Test("A backup in which both records are older is migrated without a warning")
    func olderBackup() throws {
        let app = try App()
        try app.open(3)
        let backup = try Data(contentsOf: app.folder.url.appending(path: "app.db"))
        try app.open(5)
        try backup.write(to: app.folder.url.appending(path: "app.db"))
        let report = try app.open(5)
        #expect(report.warnings.besidesLeases.isEmpty)
        #expect(report.launch == .upgrade(from: 3, to: 5))
        #expect(try app.steps() == [2, 3, 4, 5])
    }

    // MARK: Raised versions

    @Test("A user_version that other code raised applies, because that code may have changed the schema")
    func raised() throws {
        var app = try App()
        try app.open(3)
        app.isEncrypted = false
        try app.open(3)
        // A release without CipherStore continues with the decrypted file.
        try app.run("ALTER TABLE log ADD COLUMN c4; INSERT INTO t VALUES (4); PRAGMA user_version = 4")
        app.isEncrypted = true
        let report = try app.open(5)
        #expect(report.launch == .upgrade(from: 4, to: 5))
        #expect(report.warnings.contains { $0.contains("user_version") })
        #expect(try app.steps() == [2, 3, 4, 5])
        #expect(try app.open(5).warnings.besidesLeases.isEmpty)
    }

    @Test("If only user_version was raised, what is missing from the schema of that version is added")
    func raisedAlone() throws {
        let app = try App()
        try app.open(3)
        try app.run("PRAGMA user_version = 4")
        let report = try app.open(4)
        #expect(report.warnings.contains { $0.contains("user_version") })
        #expect(try app.with { try $0.values(Int.self, "SELECT count(c4) FROM log") } == [0])
        #expect(try app.userVersion() == 4)
        #expect(try app.open(4).warnings.besidesLeases.isEmpty)
    }

    @Test("A user_version beyond the app's version is refused with an error that names both records")
    func raisedBeyondTheApp() throws {
        let app = try App()
        try app.open(3)
        try app.run("PRAGMA user_version = 9")
        let before = try FolderDigest(app.folder.url)
        for error in try [storeError { try app.open(4) }, storeError { try app.plan(4) }] {
            #expect(error?.code == .downgrade)
            #expect(error?.description.contains("user_version") == true)
            #expect(error?.description.contains("history records version 3") == true)
        }
        #expect(try FolderDigest(app.folder.url) == before)
    }

    @Test("A version of several numbers is only in the history, and user_version is ignored")
    func dotted() throws {
        let folder = try TemporaryFolder()
        func open(_ version: String) throws -> OpenReport {
            let configuration = Configuration.declaring(
                ["chat": ["id": "INTEGER"]], version: try #require(SchemaVersion(version)))
            return try StoreOpening(
                configuration: configuration, directory: folder.url.path(percentEncoded: false),
                provider: TestKeys.provider()
            ).run().report
        }
        _ = try open("1.9")
        let connection = try Connection(
            path: folder.path("app.db"), mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        try connection.execute("PRAGMA user_version = 77")
        connection.close()
        let report = try open("1.10")
        #expect(report.warnings.besidesLeases.isEmpty)
        #expect(report.migration.from == SchemaVersion("1.9"))
    }

    // MARK: Emptied records

    @Test("If the history was emptied with all other tables, user_version applies")
    func emptied() throws {
        var app = try App()
        app.recordedVersion = .table(.init(table: "db_version", column: "db_version_num", offset: -1))
        try app.open(4)
        try app.run("DELETE FROM cipherstore_history; DELETE FROM t; INSERT INTO t VALUES ('kept')")
        let report = try app.open(4)
        #expect(report.migration.from == 4)
        #expect(report.warnings.contains { $0.contains("cipherstore_history") })
        #expect(try app.with { try $0.values(String.self, "SELECT step FROM t") } == ["kept"])
        #expect(try app.open(4).warnings.besidesLeases.isEmpty)
        try app.run("DELETE FROM cipherstore_history")
        #expect(try storeError { try app.open(2) }?.code == .downgrade)
    }

    @Test("If the history was emptied, an outdated record beside the database is ignored")
    func emptiedWithStalePropertyList() throws {
        var app = try App()
        app.recordedVersion = .propertyList(file: "kept.plist", key: "version")
        try app.open(4)
        try app.folder.write(
            "<plist version=\"1.0\"><dict><key>version</key><integer>2</integer></dict></plist>", to: "kept.plist")
        try app.run("DELETE FROM cipherstore_history")
        try app.open(4)
        #expect(try app.steps() == [2, 3, 4])
    }

    @Test("If the history was dropped, the version that the app has recorded applies")
    func dropped() throws {
        let app = try App()
        try app.open(4)
        try app.run("DROP TABLE cipherstore_history")
        #expect(try app.open(4).migration.event == .adopted)
        #expect(try app.steps() == [2, 3, 4])
    }

    // MARK: Other commands

    @Test("Validating names both records, and repairing records the higher one in both")
    func repairs() throws {
        let app = try App()
        try app.open(4)
        try app.run("PRAGMA user_version = 2")
        let opening = try app.opening(4)
        #expect(try opening.history().version == 4)
        let found = try opening.validate()
        #expect(found.sentences.count == 1)
        #expect(found.sentences.first?.contains("history records version 4") == true)
        #expect(try opening.repair().version == 4)
        #expect(try app.userVersion() == 4)
        #expect(try opening.validate().isValid)
    }

    @Test("An inspection shows the version that applies, and user_version if it differs")
    func inspection() throws {
        let app = try App()
        try app.open(4)
        try app.run("PRAGMA user_version = 2")
        let inspector = try Inspector(path: app.folder.path("app.db"))
        let found = try inspector.inspect(provider: TestKeys.provider(), formats: [CipherSettings()])
        #expect(found.version == 2)
        #expect(found.recordedVersion == 4)
    }
}
