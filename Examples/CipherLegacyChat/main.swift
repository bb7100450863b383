import CipherSQLite

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

// Writes the database of a chat app at version 23 as the app would have left it: plaintext, in WAL mode, with the
// latest messages still in the -wal.
//
// Usage: CipherLegacyChat FILE [MESSAGES]

guard CommandLine.arguments.count >= 2, let messages = Int(CommandLine.arguments.dropFirst(2).first ?? "200000") else {
    print("usage: CipherLegacyChat FILE [MESSAGES]")
    exit(64)
}
let path = CommandLine.arguments[1]

/// Makes up messages, which are the same in each run.
struct MessageWriter {
    // A linear congruential generator with Knuth's constants for MMIX.
    private var state: UInt64 = 20_260_101
    private let words = [
        "the", "train", "is", "late", "again", "so", "I", "walk", "home", "and", "call", "you", "later", "café",
        "naïve",
        "你好", "привет", "مرحبا", "👋🏽", "dinner", "at", "eight", "bring", "bread", "please", "O'Brien", "said", "\"yes\"",
    ]

    private mutating func number(below limit: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(limit))
    }

    mutating func insert(_ range: Range<Int>, into db: Connection) throws {
        for id in range {
            let text = (0..<(8 + number(below: 70))).map { _ in words[number(below: words.count)] }
            let body: String? = id % 97 == 0 ? nil : text.joined(separator: " ")
            let attachment: [UInt8]? =
                id % 20 == 0 ? (0..<(500 + number(below: 1_500))).map { UInt8(truncatingIfNeeded: $0 &* id) } : nil
            let score: Double? = id % 3 == 0 ? Double(number(below: 1000)) / 7 : nil
            // Numbers beyond 32 bits: milliseconds since 1970, and larger ones.
            let sentAt: Int64 = id % 1_000 == 0 ? Int64.max - Int64(id) : 1_600_000_000_000 + Int64(id) * 61_003
            let uid = "user-\(number(below: 500))"
            try db.execute(
                """
                INSERT INTO chat(id, uid, body, attachment, sentAt, score)
                VALUES (\(id), \(uid), \(body), \(attachment), \(sentAt), \(score))
                """)
        }
    }
}

var writer = MessageWriter()
let db = try Connection(path: path, mode: .create)
_ = try db.value(String.self, "PRAGMA journal_mode = WAL")
try db.execute("PRAGMA synchronous = OFF")
try db.executeScript(
    """
    CREATE TABLE chat(
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, body TEXT, attachment BLOB, sentAt INTEGER, score REAL);
    CREATE TABLE contact(
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT UNIQUE, name TEXT, phone TEXT, avatar BLOB,
        blocked INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE attachment_cache(messageId INTEGER, fetchedAt INTEGER, content BLOB);
    CREATE INDEX chat_by_user ON chat(uid, sentAt);
    PRAGMA user_version = 23;
    """)
try db.transaction {
    for user in 0..<500 {
        let avatar = (0..<3_000).map { UInt8(truncatingIfNeeded: $0 &* user) }
        let name = "Contact \(user)"
        try db.execute("INSERT INTO contact(uid, name, avatar) VALUES (\("user-\(user)"), \(name), \(avatar))")
    }
    try writer.insert(1..<(messages - messages / 100), into: db)
    for id in stride(from: 1, to: messages, by: 250) {
        let content = (0..<8_000).map { UInt8(truncatingIfNeeded: $0 &* id &+ $0 / 7) }
        try db.execute("INSERT INTO attachment_cache VALUES (\(id), \(1_600_000_000_000 + id), \(content))")
    }
    // Deletions leave gaps, so rowids differ from the number of rows.
    try db.execute("DELETE FROM chat WHERE id % 1013 = 0")
    try db.execute("DELETE FROM attachment_cache WHERE messageId % 3 = 0")
}
_ = try db.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
_ = try db.value(Int.self, "PRAGMA wal_autocheckpoint = 0")
try db.transaction { try writer.insert((messages - messages / 100)..<(messages + 1), into: db) }
// An app that is killed closes nothing: its last messages stay in the -wal.
_exit(0)
