internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
import Testing

/// Which views and triggers a migration has broken.
@Suite struct DanglingObjectsTests {
    /// Compares what cannot be compiled before a change with what cannot be compiled after it.
    private func check(_ script: String, _ change: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), script)
        let connection = try fixture.open()
        defer { connection.close() }
        func dangling() throws -> DanglingObjects {
            try DanglingObjects(in: connection, DatabaseState(of: connection, countsRows: false) { nil })
        }
        let before = try dangling()
        try connection.executeScript(text: change)
        try dangling().requireNoneBeyond(before, origins: [:], path: "app.db")
    }

    @Test(
        "An object that was broken before may be broken for another reason afterwards",
        arguments: [
            "CREATE VIEW v AS SELECT pinned, never FROM chat",
            "CREATE TRIGGER r AFTER INSERT ON chat BEGIN SELECT new.pinned, new.never; END",
            "CREATE TRIGGER r AFTER UPDATE ON chat BEGIN SELECT new.pinned, new.never; END",
        ])
    func otherReason(_ object: String) throws {
        try check("CREATE TABLE chat(id); \(object)", "ALTER TABLE chat ADD COLUMN pinned")
    }

    @Test(
        "A newly broken object is detected, even beside one that was broken before",
        arguments: [
            "CREATE VIEW v AS SELECT id FROM other; CREATE VIEW w AS SELECT id FROM never",
            "CREATE TRIGGER r AFTER INSERT ON chat BEGIN DELETE FROM other; END;"
                + "CREATE TRIGGER s AFTER DELETE ON chat BEGIN DELETE FROM never; END",
        ])
    func newlyBroken(_ objects: String) throws {
        let error = try storeError {
            try check("CREATE TABLE chat(id); CREATE TABLE other(id); \(objects)", "DROP TABLE other")
        }
        #expect(error?.code == .migration)
        #expect(error?.underlying?.message.contains("other") == true)
    }
}
