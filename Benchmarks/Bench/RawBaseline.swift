import AppSQLite
import CipherSQLite
import Foundation

/// A Swift program on SQLite's C interface, with statements compiled once: the baseline of the statement benchmarks.
final class RawBaseline {
    private let handle: OpaquePointer
    private let insertion: OpaquePointer
    private let all: OpaquePointer
    private let one: OpaquePointer
    private let events: OpaquePointer

    /// Makes SQLite copy the bytes of a text.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    init(path: String, key: CipherKey) throws {
        var opened: OpaquePointer?
        try Self.check(
            sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nil))
        guard let opened else { throw BenchmarkFailure("SQLite gave no connection") }
        handle = opened
        try Self.setKey(key, handle)
        let setup = """
            PRAGMA temp_store = MEMORY; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
            CREATE TABLE message(id INTEGER PRIMARY KEY, uid TEXT, body TEXT, sentAt INTEGER);
            """
        try Self.check(sqlite3_exec(handle, setup + Event.table(rows: StatementBenchmarks.rows), nil, nil, nil))
        insertion = try Self.prepare("INSERT INTO message(id, uid, body, sentAt) VALUES (?, ?, ?, ?)", handle)
        all = try Self.prepare("SELECT id, uid, body, sentAt FROM message", handle)
        one = try Self.prepare("SELECT id, uid, body, sentAt FROM message WHERE id = ?", handle)
        events = try Self.prepare("SELECT id, uid, at, content FROM event", handle)
    }

    /// Opens an encrypted file and reads its schema: the least that any program needs for one connection.
    static func open(path: String, key: CipherKey) throws {
        var opened: OpaquePointer?
        defer { sqlite3_close(opened) }
        try check(sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil))
        guard let opened else { throw BenchmarkFailure("SQLite gave no connection") }
        try setKey(key, opened)
        try check(sqlite3_exec(opened, "SELECT count(*) FROM sqlite_master", nil, nil, nil))
    }

    private static func setKey(_ key: CipherKey, _ handle: OpaquePointer) throws {
        try check(key.text.withUnsafeBytes { sqlite3_key(handle, $0.baseAddress, Int32($0.count)) })
    }

    func close() {
        for statement in [insertion, all, one, events] { sqlite3_finalize(statement) }
        sqlite3_close(handle)
    }

    private static func prepare(_ sql: String, _ handle: OpaquePointer) throws -> OpaquePointer {
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v2(handle, sql, -1, &statement, nil))
        guard let statement else { throw BenchmarkFailure("SQLite gave no statement") }
        return statement
    }

    private static func check(_ code: Int32) throws {
        guard code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW else {
            throw BenchmarkFailure("the baseline failed with code \(code)")
        }
    }

    private func run(_ sql: String) throws { try Self.check(sqlite3_exec(handle, sql, nil, nil, nil)) }

    private func insertOne(_ message: Message) throws {
        sqlite3_bind_int64(insertion, 1, message.id)
        Self.bind(message.uid, 2, insertion)
        Self.bind(message.body, 3, insertion)
        sqlite3_bind_int64(insertion, 4, message.sentAt)
        let code = sqlite3_step(insertion)
        sqlite3_reset(insertion)
        try Self.check(code)
    }

    private static func bind(_ text: String, _ index: Int32, _ statement: OpaquePointer) {
        var text = text
        text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                _ = sqlite3_bind_text(statement, index, $0.baseAddress, Int32($0.count), transient)
            }
        }
    }

    func insert(_ rows: Int) throws {
        try run("DELETE FROM message; BEGIN IMMEDIATE")
        for id in 0..<rows { try insertOne(Message(number: id)) }
        try run("COMMIT")
    }

    func fetch() throws -> [Message] {
        var messages: [Message] = []
        var code = sqlite3_step(all)
        while code == SQLITE_ROW {
            messages.append(Self.message(all))
            code = sqlite3_step(all)
        }
        sqlite3_reset(all)
        try Self.check(code)
        return messages
    }

    func fetchEvents() throws -> [Event] {
        var found: [Event] = []
        var code = sqlite3_step(events)
        while code == SQLITE_ROW {
            guard let uid = UUID(uuidString: Self.text(events, 1)), let start = sqlite3_column_blob(events, 3) else {
                throw BenchmarkFailure("a row differs from what was written")
            }
            found.append(
                Event(
                    id: sqlite3_column_int64(events, 0), uid: uid,
                    at: Date(timeIntervalSince1970: sqlite3_column_double(events, 2)),
                    content: Data(bytes: start, count: Int(sqlite3_column_bytes(events, 3)))))
            code = sqlite3_step(events)
        }
        sqlite3_reset(events)
        try Self.check(code)
        return found
    }

    private static func message(_ statement: OpaquePointer) -> Message {
        Message(
            id: sqlite3_column_int64(statement, 0), uid: text(statement, 1), body: text(statement, 2),
            sentAt: sqlite3_column_int64(statement, 3))
    }

    private static func text(_ statement: OpaquePointer, _ column: Int32) -> String {
        guard let start = sqlite3_column_text(statement, column) else { return "" }
        let count = Int(sqlite3_column_bytes(statement, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    func lookUp(_ id: Int64) throws -> Message? {
        sqlite3_bind_int64(one, 1, id)
        let code = sqlite3_step(one)
        let message = code == SQLITE_ROW ? Self.message(one) : nil
        sqlite3_reset(one)
        try Self.check(code)
        return message
    }

    func commit(_ rows: Int) throws {
        try run("DELETE FROM message")
        for id in 0..<rows {
            try run("BEGIN IMMEDIATE")
            try insertOne(Message(number: id))
            try run("COMMIT")
        }
    }
}
