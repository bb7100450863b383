internal import CipherDatabaseConversion
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Files and configurations of an app at version 26 that encrypts from version 24 on.
enum OpeningFixture {
    static func configuration(
        _ encryption: Configuration.Encryption = .init(sinceVersion: 24),
        recordedVersion: RecordedVersion = .userVersion
    ) -> Configuration {
        Configuration(databaseName: "app.db", version: 26, encryption: encryption, recordedVersion: recordedVersion)
    }

    /// Makes a file with three rows, of which the last is only in the log, if there is one.
    static func file(
        version: Int, encryptedWith key: CipherKey? = nil, settings: CipherSettings = CipherSettings(),
        journal: String = "WAL", extra: String = ""
    ) throws -> LegacyFile {
        try LegacyFile(unclosed: true) { connection in
            if let key { try connection.setKey(key, settings: settings) }
            _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(journal)"))
            try connection.executeScript(
                text: """
                    CREATE TABLE t(a TEXT); INSERT INTO t(rowid, a) VALUES (-4, 'first'), (9, 'second');
                    PRAGMA user_version = \(version); \(extra)
                    """)
            if journal == "WAL" { _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)") }
            try connection.execute("INSERT INTO t(rowid, a) VALUES (77, 'third')")
        }
    }

    static func open(
        _ folder: TemporaryFolder, _ configuration: Configuration = configuration(),
        key: @escaping @Sendable () throws -> CipherKey = { try TestKeys.raw() }
    ) throws -> StoreOpening.Opened {
        try open(folder, configuration, provider: TestKeys.provider(key))
    }

    static func open(
        _ folder: TemporaryFolder, _ configuration: Configuration, provider: any KeyProvider
    ) throws -> StoreOpening.Opened {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        return try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: provider, options: options
        ).run()
    }

    /// The rows that ``file(version:encryptedWith:settings:journal:extra:)`` wrote.
    static func rows(_ file: LegacyFile, key: CipherKey?, settings: CipherSettings = CipherSettings()) throws
        -> [String]
    {
        try file.read(key: key, settings: settings) {
            try $0.values(String.self, "SELECT rowid || ' ' || a FROM t ORDER BY rowid")
        }
    }

    static let allRows = ["-4 first", "9 second", "77 third"]
}

/// A place in which an app records its version, and the means to record one there.
struct RecordedPlace: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let source: RecordedVersion
    /// SQL that records a version in the database.
    let script: @Sendable (Int) -> String
    /// A property list beside the database that records a version.
    var propertyList: String?

    static let all: [RecordedPlace] = [
        RecordedPlace(testDescription: "user_version", source: .userVersion) { "PRAGMA user_version = \($0);" },
        RecordedPlace(
            testDescription: "the next update to run",
            source: .table(.init(table: "db_version", column: "db_version_num", offset: -1))
        ) { "CREATE TABLE db_version(db_version_num); INSERT INTO db_version VALUES (\($0 + 1));" },
        RecordedPlace(
            testDescription: "text in a row among others",
            source: .table(.init(table: "Records", column: "value", filter: ["name": "DBVersion"]))
        ) {
            "CREATE TABLE Records(name TEXT, value TEXT); INSERT INTO Records VALUES ('other', 'x'), ('DBVersion', '\($0)');"
        },
        RecordedPlace(
            testDescription: "an app version of an account",
            source: .table(.init(table: "tb_clientstage", column: "version", filter: ["id": "1", "tableno": "0"]))
        ) {
            "CREATE TABLE tb_clientstage(id TEXT, tableno TEXT, version TEXT); INSERT INTO tb_clientstage VALUES ('1', '0', '\($0).0.0');"
        },
        RecordedPlace(
            testDescription: "a version for each table",
            source: .table(.init(table: "tableVersion", column: "version"))
        ) {
            "CREATE TABLE tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE); INSERT INTO tableVersion(name, version) VALUES ('a', 1.4), ('b', \($0));"
        },
        RecordedPlace(
            testDescription: "a row for each migration", source: .migrations(.init((1...26).map { "v\($0)" }))
        ) { version in
            let names = (1...version).map { "('v\($0)')" }.joined(separator: ", ")
            return
                "CREATE TABLE grdb_migrations(identifier TEXT NOT NULL PRIMARY KEY); INSERT INTO grdb_migrations VALUES \(names);"
        },
        RecordedPlace(
            testDescription: "a property list", source: .propertyList(file: "settings.plist", key: "dbVersion"),
            script: { _ in "" }, propertyList: "settings.plist"),
        RecordedPlace(
            testDescription: "the app's own way",
            source: .custom { path in
                let text = try String(contentsOfFile: path + ".version", encoding: .utf8)
                return SchemaVersion(text)
            }, script: { _ in "" }, propertyList: "app.db.version"),
    ]

    /// Writes the file beside the database that records a version, if the place is a file.
    func record(_ version: Int, in folder: TemporaryFolder) throws {
        guard let propertyList else { return }
        try folder.write(
            propertyList.hasSuffix(".plist")
                ? "<plist version=\"1.0\"><dict><key>dbVersion</key><integer>\(version)</integer></dict></plist>"
                : "\(version)", to: propertyList)
    }
}
