internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Foundation
import Testing

/// The version that a database or its app recorded.
struct RecordedVersionReaderTests {
    let folder: TemporaryFolder
    let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(path: folder.path("app.db"), mode: .create)
    }

    private func read(
        _ recorded: RecordedVersion, _ fractions: RecordedVersion.Fractions = .asWritten
    ) throws -> SchemaVersion? {
        try recorded.read(from: connection, databasePath: folder.path("app.db"), fractions)
    }

    private func failure(_ recorded: RecordedVersion) -> StoreError? {
        let error = #expect(throws: StoreError.self) { try read(recorded) }
        #expect(error?.code == .recordedVersion)
        return error
    }

    @Test("PRAGMA user_version is read as the version", arguments: [0, 1, 24, 2_147_483_647])
    func userVersion(number: Int) throws {
        try connection.executeScript(text: "PRAGMA user_version = \(number)")
        #expect(try read(.userVersion) == SchemaVersion(number))
    }

    @Test func `A negative user_version is no version`() throws {
        try connection.executeScript("PRAGMA user_version = -3")
        #expect(failure(.userVersion)?.description.contains("negative") == true)
    }

    @Test(
        "A column's value is read as a version in every form that apps have used",
        arguments: [
            ("3", 0, SchemaVersion(3)), ("4", -1, 3), ("0", 0, 0), ("3.0", 0, 3), ("1.4", 0, SchemaVersion("1.4")),
            ("'3'", 0, 3), ("'4'", -1, 3), ("'1.0.0'", 0, 1), ("'1.10.2'", 0, SchemaVersion("1.10.2")),
            ("4.0", -1, 3), ("2", 40, 42),
        ] as [(String, Int, SchemaVersion?)])
    func values(literal: String, offset: Int, expected: SchemaVersion?) throws {
        try connection.executeScript(text: "CREATE TABLE v(n); INSERT INTO v VALUES (\(literal))")
        #expect(expected != nil)
        #expect(try read(.table(.init(table: "v", column: "n", offset: offset))) == expected)
    }

    @Test("A table definition with unusual white space is read as a table")
    func whiteSpace() throws {
        try connection.executeScript(
            """
            CREATE TABLE v(n); INSERT INTO v VALUES (3); PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = 'CREATE /* of versions */ TABLE v(n)'
            """)
        #expect(try read(.table(.init(table: "v", column: "n"))) == 3)
    }

    @Test(
        "A view or a virtual table is not accepted as a record, whatever its name",
        arguments: [
            "CREATE VIEW v AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n FROM c) SELECT n FROM c",
            "CREATE VIRTUAL TABLE v USING fts4(n); INSERT INTO v VALUES ('3')",
        ])
    func noTables(script: String) throws {
        try connection.executeScript(text: script)
        #expect(
            failure(.table(.init(table: "v", column: "n")))?.description.contains("not an ordinary table") == true)
    }

    @Test(
        "A value that is not a version is refused and not shown",
        arguments: [
            ("'s3cret'", 0), ("-1", 0), ("0", -1), ("-1.5", 0), ("''", 0), ("' 3'", 0), ("'-3'", 0), ("NULL", 0),
            ("x'33'", 0), ("9e999", 0), ("1e300", 0), ("9223372036854775807", 1), ("'1.2'", -1), ("1.4", 1),
            ("'99999999999999999999'", 0),
        ])
    func noValues(literal: String, offset: Int) throws {
        try connection.executeScript(text: "CREATE TABLE v(num_of_version); INSERT INTO v VALUES (\(literal))")
        let error = failure(.table(.init(table: "v", column: "num_of_version", offset: offset)))
        #expect(error?.description.contains("\"num_of_version\" of the table \"v\"") == true)
        #expect(error?.description.contains("s3cret") == false)
        #expect(error?.description.contains("99999") == false)
    }

    @Test(
        "If versions have dots, a column that stores them as numbers is refused with its name and advice",
        arguments: ["REAL", "NUMERIC", "DECIMAL(5,2)", "DOUBLE", "INTEGER"])
    func fractions(type: String) throws {
        try connection.executeScript(text: "CREATE TABLE v(n \(type)); INSERT INTO v VALUES ('1.10')")
        let place = RecordedVersion.table(.init(table: "v", column: "n"))
        let error = try #require(try storeError { try read(place, .refused) })
        #expect(error.code == .recordedVersion)
        #expect(error.detail.contains("\"n\" of the table \"v\""))
        #expect(error.advice.contains("recordedVersion.assume"))
        #expect(try read(place, .assumed(7)) == 7)
        // A text with three numbers is not a fraction, and a whole number is the same version in every form.
        for (text, version) in [("1.10.0", "1.10"), ("2.0", "2"), ("10", "10"), ("3", "3")] {
            try connection.execute("UPDATE v SET n = \(text)")
            #expect(try read(place, .refused) == SchemaVersion(version))
        }
    }

    @Test("If versions have dots, a number without quotes beside the database is refused")
    func fractionBeside() throws {
        try folder.write(#"{"version": 1.10}"#, to: "kept.json")
        let place = RecordedVersion.propertyList(file: "kept.json", key: "version")
        let error = try #require(try storeError { try read(place, .refused) })
        #expect(error.code == .recordedVersion)
        #expect(error.path == folder.path("kept.json"))
        #expect(error.detail.contains("\"version\""))
    }

    @Test func `Without the table or a row that matches nothing is recorded`() throws {
        let recorded = RecordedVersion.table(.init(table: "Records", column: "value", filter: ["name": "DBVersion"]))
        #expect(try read(recorded) == nil)
        try connection.executeScript("CREATE TABLE Records(name TEXT, value TEXT)")
        #expect(try read(recorded) == nil)
        try connection.executeScript("INSERT INTO Records VALUES ('Other', 'text'), (NULL, '9')")
        #expect(try read(recorded) == nil)
        try connection.executeScript("INSERT INTO Records VALUES ('DBVersion', '3')")
        #expect(try read(recorded) == 3)
    }

    @Test func `Numbers are found by their text, as the app's own statement found them`() throws {
        try connection.executeScript(
            """
            CREATE TABLE tb_clientstage(id INTEGER, tableno TEXT, version TEXT);
            INSERT INTO tb_clientstage VALUES (1, '0', '1.0.0'), (1, '1', '9.0.0'), (2, '0', '8.0.0');
            """)
        let filter = ["id": "1", "tableno": "0"]
        #expect(try read(.table(.init(table: "tb_clientstage", column: "version", filter: filter))) == 1)
    }

    @Test func `Of several rows the highest version counts`() throws {
        try connection.executeScript("CREATE TABLE v(n); INSERT INTO v VALUES ('1.9.2'), ('1.10.0'), (1)")
        #expect(try read(.table(.init(table: "v", column: "n"))) == SchemaVersion("1.10.0"))
    }

    @Test(
        "For an app that updates in steps, the first record that exists is used",
        arguments: [
            ("PRAGMA user_version = 0", nil), ("PRAGMA user_version = 5", 5),
            ("PRAGMA user_version = 5; CREATE TABLE db_version (db_version_num); INSERT INTO db_version VALUES (4)", 3),
            ("CREATE TABLE db_version (db_version_num)", nil),
            (
                """
                PRAGMA user_version = 5; CREATE TABLE tb_clientstage (id, tableno, version);
                INSERT INTO tb_clientstage VALUES ('1', '0', '1.10.0'), ('2', '0', '7')
                """, SchemaVersion("1.10")
            ),
        ] as [(String, SchemaVersion?)])
    func stepRecords(script: String, expected: SchemaVersion?) throws {
        try connection.executeScript(text: script)
        #expect(try read(.stepRecords) == expected)
    }

    @Test func `Tables and columns are found as SQLite finds them`() throws {
        try connection.executeScript(
            text: #"CREATE TABLE "Db ""Version"(Num INTEGER); INSERT INTO "Db ""Version" VALUES (7)"#)
        #expect(try read(.table(.init(table: #"DB "VERSION"#, column: "nUM"))) == 7)
    }

    @Test(
        "A missing column is named in the error, and its name is never read as text",
        arguments: [("num", [:]), ("n", ["kind": "kind"])] as [(String, [String: String])])
    func missingColumn(column: String, filter: [String: String]) throws {
        try connection.executeScript("CREATE TABLE v(n); INSERT INTO v VALUES (1)")
        let error = failure(.table(.init(table: "v", column: column, filter: filter)))
        #expect(error?.description.contains("has no column \"\(filter.keys.first ?? column)\"") == true)
    }

    @Test(
        "The version can be recorded in a property list beside the database",
        arguments: [
            (#"{"version": 24}"#, SchemaVersion(24)), (#"{"version": "1.2.0"}"#, SchemaVersion("1.2")),
            (#"{"version": 1.4}"#, SchemaVersion("1.4")), (#"{"other": true}"#, nil),
            ("<plist><dict><key>version</key><integer>24</integer></dict></plist>", 24),
        ] as [(String, SchemaVersion?)])
    func propertyList(text: String, expected: SchemaVersion?) throws {
        try folder.write(text, to: "kept.plist")
        #expect(try read(.propertyList(file: "kept.plist", key: "version")) == expected)
    }

    @Test func `A property list that is missing records nothing`() throws {
        #expect(try read(.propertyList(file: "kept.plist", key: "version")) == nil)
    }

    @Test(
        "A property list without a version is refused and not shown",
        arguments: [
            #"{"version": true}"#, #"{"version": "s3cret"}"#, #"{"version": -1}"#, #"{"version": [1]}"#, "[1]",
            "s3cret", "", "{",
        ])
    func noPropertyList(text: String) throws {
        try folder.write(text, to: "kept.plist")
        let error = failure(.propertyList(file: "kept.plist", key: "version"))
        #expect(error?.path == folder.path("kept.plist"))
        #expect(error?.description.contains("s3cret") == false)
    }

    @Test("A property list in another folder is refused", arguments: ["../kept.plist", "", "app.db", "link"])
    func elsewhere(file: String) throws {
        try connection.executeScript("CREATE TABLE t(a)")
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("link"), withDestinationPath: folder.path("app.db"))
        let error = failure(.propertyList(file: file, key: "version"))
        #expect(error?.description.contains("property list that contains the recorded version") == true)
    }

    @Test func `The app's closure is given the path, and its errors stay what they are`() throws {
        struct Locked: Error {}
        let path = folder.path("app.db")
        #expect(try read(.custom { $0 == path ? 5 : nil }) == 5)
        #expect(try read(.custom { _ in nil }) == nil)
        #expect(throws: Locked.self) { try read(.custom { _ in throw Locked() }) }
        #expect(failure(.custom { _ in SchemaVersion(-1) }) != nil)
    }
}
