internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Testing

/// A killed upgrade whose rename redirected the foreign keys of other tables to `tableOld`, as SQLite does since 3.26.
struct LeftoverReferenceTests {
    let fixture: PriorFixture

    init() throws {
        fixture = try PriorFixture("TableVersions/MessageStore.json")
    }

    /// Writes the messages 2, 5, 9 and 4294967296, which the upgrade has renumbered from 1 to 4.
    ///
    /// - Parameter chats: The messages of the attachments.
    private func write(_ chats: [Int], _ more: String = "") throws {
        try fixture.write { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            try connection.executeScript(
                "INSERT INTO chat(id, uid) VALUES (2, 'cy'); DROP TABLE attachment")
            try TableVersionsApp.upgrade("chat", to: 3, until: .copied, connection)
            try connection.executeScript(
                text: """
                    CREATE TABLE attachment(id INTEGER PRIMARY KEY AUTOINCREMENT, chatId INTEGER REFERENCES "tableOld"(id), content BLOB);
                    \(chats.map { "INSERT INTO attachment(chatId) VALUES (\($0));" }.joined()) \(more)
                    """)
        }
    }

    private func owners() throws -> [String] {
        try fixture.values("SELECT uid FROM attachment JOIN chat ON chat.id = chatId ORDER BY attachment.id")
    }

    private func parents() throws -> [String] {
        try fixture.read { connection in
            var names: [String] = []
            try connection.forEachRow("PRAGMA foreign_key_list(attachment)") { names.append(try $0.get(at: 2)) }
            return names
        }
    }

    @Test(
        "A foreign key to tableOld refers to its keys, even if the copies have the same keys",
        arguments: [([2], ["cy"]), ([2, 9], ["cy", "bo"]), ([2, 77], ["cy"]), ([], [])])
    func takesOldKeys(chats: [Int], uids: [String]) throws {
        try write(chats)
        let report = try fixture.open()
        #expect(report.migration.withheld.isEmpty)
        #expect(try owners() == uids)
        #expect(try parents() == ["chat"])
        #expect(try fixture.values("SELECT id FROM chat ORDER BY id") == ["2", "5", "9", "4294967296"])
        #expect(try fixture.values("SELECT count(*) FROM sqlite_master WHERE sql LIKE '%tableOld%'") == ["0"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test(
        "If rows can only refer to the new keys, or the table has more rows, both tables and the foreign key stay",
        arguments: [([2, 3], ""), ([9], "INSERT INTO chat(uid) VALUES ('new')"), ([2], "UPDATE chat SET edited = 1")])
    func keepsReference(chats: [Int], more: String) throws {
        try write(chats, more)
        #expect(try storeError { try self.fixture.open() }?.code == .migration)
        let fixture = self.fixture.keepingLeftoverRows
        #expect(try fixture.plan().schema.withheld.map(\.table) == ["tableOld", "attachment"])
        let withheld = try fixture.open().migration.withheld
        #expect(withheld.map(\.table) == ["tableOld", "attachment"])
        #expect(withheld.last?.kind == .changeTable)
        #expect(withheld.last?.column == "chatId")
        #expect(try parents() == ["tableOld"])
        #expect(try fixture.values("SELECT chatId FROM attachment ORDER BY id") == chats.map { "\($0)" })
        #expect(try fixture.values("SELECT id FROM tableOld ORDER BY id") == ["2", "5", "9", "4294967296"])
        let again = try fixture.open().migration
        #expect(again.applied.isEmpty)
        #expect(again.withheld.map(\.table) == ["tableOld", "attachment"])
    }

    @Test("A reference to a row that both tables have under one key follows the declaration")
    func followsHeldRows() throws {
        try write([2], "DELETE FROM chat; INSERT INTO chat(id, uid) SELECT id, uid FROM tableOld")
        try fixture.read {
            try $0.executeScript("UPDATE chat SET body = (SELECT msg FROM tableOld o WHERE o.id = chat.id)")
        }
        #expect(try fixture.open().migration.withheld.isEmpty)
        #expect(try parents() == ["chat"])
        #expect(try owners() == ["cy"])
    }
}
