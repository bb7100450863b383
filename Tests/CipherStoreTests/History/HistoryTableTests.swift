internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct HistoryTableTests {
    struct Course: Sendable, CustomTestStringConvertible {
        var events: [HistoryEvent]
        var isStamped: Bool
        var isAdopted: Bool
        var testDescription: String { events.map(\.rawValue).joined(separator: ", ") }
    }

    static let courses = [
        Course(events: [], isStamped: false, isAdopted: false),
        Course(events: [.openedPlaintext], isStamped: true, isAdopted: false),
        Course(events: [.encrypted], isStamped: false, isAdopted: false),
        Course(events: [.created, .openedPlaintext], isStamped: true, isAdopted: true),
        Course(events: [.openedPlaintext, .created], isStamped: true, isAdopted: true),
        Course(events: [.adopted, .openedPlaintext, .migrated], isStamped: true, isAdopted: true),
        Course(events: [.openedPlaintext, .encrypted, .adopted], isStamped: false, isAdopted: true),
        Course(events: [.created, .migrated], isStamped: false, isAdopted: true),
        Course(events: [.encrypted, .adopted, .migrated, .openedPlaintext], isStamped: true, isAdopted: true),
    ]

    @Test(
        "The history table records a plaintext stamp and an adoption, readable on a read-only connection",
        arguments: courses,
        MigrationFixture.Form.all)
    func tellsStamps(course: Course, form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, "CREATE TABLE a(x)")
        try fixture.with { (connection) throws in
            for event in course.events { try HistoryTable.append(event, in: connection) }
        }
        let before = try fixture.bytes()
        try fixture.with(.readOnly) { (connection) throws in
            #expect(try HistoryTable.exists(connection) == !course.events.isEmpty)
            #expect(try HistoryTable.isStampedPlaintext(connection) == course.isStamped)
            #expect(try HistoryTable.isAdopted(connection) == course.isAdopted)
            #expect(try HistoryTable.latestEvents(connection).map(\.event) == course.events.reversed().map(\.rawValue))
            #expect(
                try HistoryTable.latestEvents(connection, limit: 1).map(\.event)
                    == course.events.suffix(1).map(\.rawValue))
        }
        #expect(try fixture.bytes()["app.db"] == before["app.db"])
    }

    @Test(
        "The history table and its column are named in the error if a value is not one that CipherStore wrote",
        arguments: ["toVersion", "detail", "schema", "checksum"])
    func foreignValue(column: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE a(x)")
        try fixture.with { (connection) throws in
            try HistoryTable.append(.adopted, to: 1, in: connection)
            try connection.execute(SQL(text: "UPDATE cipherstore_history SET \(column) = X'00ff'"))
            let error = #expect(throws: StoreError.self) {
                _ = try HistoryTable.latestEvents(connection)
                _ = try VersionRecords(connection)
                _ = try SchemaRecord.latest(connection)
            }
            #expect(error?.code == .corrupt)
            let text = error?.description ?? ""
            #expect(
                text.contains("a row of cipherstore_history contains a value that CipherStore did not write"), "\(text)"
            )
            #expect(text.contains("(\(column)) is BLOB") && !text.contains("disk"), "\(text)")
        }
    }

    @Test("The history table does not determine the version before a version was recorded in it")
    func stampDoesNotAdopt() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE a(x); PRAGMA user_version = 99")
        try fixture.with { try HistoryTable.append(.encrypted, in: $0) }
        let report = try fixture.launch(.declaring(["a": ["x": ""]]), recorded: 23)
        #expect(report.from == 23)
        #expect(report.event == .adopted)
        #expect(try fixture.with { try HistoryTable.latestEvents($0).map(\.event) } == ["adopted", "encrypted"])
    }

    @Test("The history table of a newer release, with unknown columns and events, is read and continued")
    func readsNewerShape() throws {
        let fixture = try MigrationFixture()
        try fixture.with { (connection) throws in
            try HistoryTable.append(.created, to: 3, in: connection)
            try connection.executeScript(
                """
                ALTER TABLE cipherstore_history ADD COLUMN later TEXT;
                INSERT INTO cipherstore_history(event, appliedAt) VALUES ('unheardOf', '2030-01-01T00:00:00.000Z');
                """)
            try HistoryTable.append(.migrated, to: 4, in: connection)
            #expect(try HistoryTable.latestEvents(connection).map(\.event) == ["migrated", "unheardOf", "created"])
        }
    }

    @Test("The history table is rolled back with the transaction that it is part of")
    func isPartOfTransaction() throws {
        struct Undo: Error {}
        let fixture = try MigrationFixture()
        try fixture.with { (connection) throws in
            #expect(throws: Undo.self) {
                try connection.transaction {
                    try HistoryTable.append(.created, in: connection)
                    throw Undo()
                }
            }
            #expect(try HistoryTable.exists(connection) == false)
        }
    }
}
