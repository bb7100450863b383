import CipherPlatform
internal import CipherSQLite
import CipherTestSupport

// Writes the plaintext databases of older versions of the chat app in Config/ChatStore.plist, and db.db, the template
// that the app in Config/Template ships.
//
//   CipherFixtureMaker FOLDER
//
// Run by Scripts/make-fixtures. The files are committed, so that tests keep reading what was written once.

/// One older version of the app.
struct OldVersion {
    let number: Int
    let name: String
    var isWriteAheadLog = false

    static let all = [
        OldVersion(number: 22, name: "chat-v22.db"),
        OldVersion(number: 23, name: "chat-v23.db"),
        OldVersion(number: 23, name: "chat-v23-wal.db", isWriteAheadLog: true),
        OldVersion(number: 24, name: "chat-v24.db"),
        OldVersion(number: 25, name: "chat-v25.db"),
    ]

    private var chat: String {
        "id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, body TEXT, attachment BLOB, sentAt INTEGER, score REAL"
            + (number >= 24 ? ", edited INTEGER" : "") + (number >= 25 ? ", threadId INTEGER" : "")
    }

    private var contact: String {
        "id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT UNIQUE, name TEXT"
            + (number >= 23 ? ", phone TEXT, avatar BLOB, blocked INTEGER NOT NULL DEFAULT 0" : "")
    }

    /// Writes the database and leaves it open.
    func write(_ path: String) throws -> Connection {
        let connection = try Connection(path: path, mode: .create)
        _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(isWriteAheadLog ? "WAL" : "DELETE")"))
        try connection.executeScript(
            text: """
                PRAGMA wal_autocheckpoint = 0;
                CREATE TABLE chat(\(chat)); CREATE TABLE contact(\(contact));
                CREATE TABLE attachment_cache(messageId INTEGER, content BLOB); CREATE INDEX chat_by_user ON chat(uid, sentAt);
                PRAGMA user_version = \(number);
                """)
        try insertMessages(1...12, connection)
        if isWriteAheadLog { _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)") }
        try insertMessages(13...20, connection)
        try connection.execute("DELETE FROM chat WHERE id IN (4, 20)")
        for (number, name) in ["Ada", "Grace O'Hopper", "李 雷"].enumerated() {
            try connection.execute(
                "INSERT INTO contact(id, uid, name) VALUES (\(number * 100 + 1), \("user-\(number)"), \(name))")
        }
        if number >= 23 {
            try connection.execute(
                "UPDATE contact SET phone = '+44 20 7946 0000', avatar = x'89504e470d0a1a0a00ff', blocked = 1 WHERE id = 101"
            )
        }
        return connection
    }

    /// Text, NULL, empty and zero bytes, numbers beyond 32 bits, and rowids with gaps.
    private func insertMessages(_ ids: ClosedRange<Int>, _ connection: Connection) throws {
        for id in ids {
            let body: String? = id % 5 == 0 ? nil : id % 7 == 0 ? "" : "message \(id): naïve café 你好 👋🏽"
            let attachment: [UInt8]? =
                id % 3 == 0 ? nil : id % 4 == 0 ? [] : (0..<id * 9).map { UInt8(truncatingIfNeeded: $0 &* id) }
            let sentAt: Int64 = id % 6 == 0 ? .max - Int64(id) : 1_600_000_000_000 + Int64(id) * 61_003
            let score: Double? = id % 2 == 0 ? Double(id) / 7 : nil
            try connection.execute(
                """
                INSERT INTO chat(id, uid, body, attachment, sentAt, score)
                VALUES (\(id), \("user-\(id % 3)"), \(body), \(attachment), \(sentAt), \(score))
                """)
            if id % 4 == 0 {
                try connection.execute(
                    "INSERT INTO attachment_cache(rowid, messageId, content) VALUES (\(id * id), \(id), x'00ff00')")
            }
        }
        if number >= 24 { try connection.execute("UPDATE chat SET edited = id * 4294967296 WHERE id % 3 = 1") }
        if number >= 25 { try connection.execute("UPDATE chat SET threadId = -id WHERE id % 4 = 1") }
    }
}

guard CommandLine.arguments.count == 2 else {
    print("usage: CipherFixtureMaker FOLDER")
    exit(64)
}
try LegacyFile.write(CommandLine.arguments[1] + "/db.db", script: TemplateApp.template(3))
let connections = try OldVersion.all.map { try $0.write(CommandLine.arguments[1] + "/" + $0.name) }
// Ends without closing anything, so that the latest rows of the database in WAL mode stay in its log.
withExtendedLifetime(connections) { _exit(0) }
