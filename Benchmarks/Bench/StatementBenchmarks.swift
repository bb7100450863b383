import CipherSQLite
import Foundation

/// Compares statements of the engine with the C interface, in one program, on encrypted files with a raw key.
struct StatementBenchmarks {
    static let rows = 200_000
    static let lookups = 50_000
    static let commits = 2_000

    let runs: Int
    private let raw: RawBaseline
    private let connection: Connection

    init(folder: URL, runs: Int) throws {
        self.runs = runs
        let key = try CipherKey.random()
        connection = try Connection(folder.appending(path: "statements.db"), mode: .create, key: key)
        try connection.executeScript(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
            CREATE TABLE message(id INTEGER PRIMARY KEY, uid TEXT, body TEXT, sentAt INTEGER);
            """)
        try connection.executeScript(text: Event.table(rows: Self.rows))
        raw = try RawBaseline(
            path: folder.appending(path: "raw.db").path(percentEncoded: false), key: key)
    }

    func close() {
        connection.close()
        raw.close()
    }

    /// The ratios of other libraries to the C interface are from separate measurements of the same work; see
    /// docs/PERFORMANCE.md.
    func run() throws -> [Measurement] {
        [
            try compare(
                "insert \(Self.rows) rows, one transaction", goal: 1.1, peers: "GRDB 1.69, SQLite.swift 1.54", insert
            ) { try raw.insert(Self.rows) },
            try compare("insert \(Self.rows) values, one transaction", goal: 1.6, peers: nil, insertValues) {
                try raw.insert(Self.rows)
            },
            try compare(
                "fetch \(Self.rows) rows by position", goal: 1.05, peers: "GRDB 1.15, SQLite.swift 2.23", fetch,
                fetchRaw),
            try compare(
                "fetch \(Self.rows) rows as Codable", goal: 1.5, peers: "GRDB 2.38, SQLite.swift 4.31", decode,
                fetchRaw),
            try compare(
                "fetch \(Self.rows) rows as Codable, with Date, Data and UUID", goal: 1.8, peers: "GRDB 2.32",
                decodeEvents, fetchRawEvents),
            try compare(
                "\(Self.lookups) lookups by key", goal: 1.05, peers: "GRDB 1.13, SQLite.swift 1.04", lookUp, lookUpRaw),
            try compare("\(Self.commits) inserts, one transaction each", goal: 1.1, peers: nil, commit) {
                try raw.commit(Self.commits)
            },
        ]
    }

    private func compare(
        _ name: String, goal: Double, peers: String?, _ ours: () throws -> Void, _ theirs: () throws -> Void
    ) throws -> Measurement {
        try .alternating(
            name, against: "C interface", goal: goal, peers: peers, runs: runs,
            ours: { try Measurement.seconds(ours) }, theirs: { try Measurement.seconds(theirs) })
    }

    private func fetchRaw() throws {
        guard try raw.fetch().count == Self.rows else { throw BenchmarkFailure("rows are missing") }
    }

    private func lookUpRaw() throws {
        for number in 0..<Self.lookups {
            let key = Int64(number * 7_919 % Self.rows)
            guard try raw.lookUp(key)?.id == key else { throw BenchmarkFailure("another row was found") }
        }
    }

    private func insertOne(_ message: Message) throws {
        try connection.execute(
            """
            INSERT INTO message(id, uid, body, sentAt)
            VALUES (\(message.id), \(message.uid), \(message.body), \(message.sentAt))
            """)
    }

    private func insert() throws {
        try connection.execute("DELETE FROM message")
        try connection.transaction {
            for id in 0..<Self.rows { try insertOne(Message(number: id)) }
        }
    }

    private func insertValues() throws {
        try connection.execute("DELETE FROM message")
        try connection.transaction {
            for id in 0..<Self.rows { try connection.insert(Message(number: id), into: "message") }
        }
    }

    private func fetch() throws {
        var messages: [Message] = []
        try connection.forEachRow("SELECT id, uid, body, sentAt FROM message") { row in
            messages.append(
                Message(
                    id: try row.get(at: 0), uid: try row.get(at: 1), body: try row.get(at: 2),
                    sentAt: try row.get(at: 3)))
        }
        guard messages.count == Self.rows else { throw BenchmarkFailure("rows are missing") }
    }

    private func decode() throws {
        let messages = try connection.rows(Message.self, "SELECT id, uid, body, sentAt FROM message")
        guard messages.count == Self.rows else { throw BenchmarkFailure("rows are missing") }
    }

    private func decodeEvents() throws {
        let events = try connection.rows(Event.self, "SELECT id, uid, at, content FROM event")
        guard events.count == Self.rows else { throw BenchmarkFailure("rows are missing") }
    }

    private func fetchRawEvents() throws {
        guard try raw.fetchEvents().count == Self.rows else { throw BenchmarkFailure("rows are missing") }
    }

    private func lookUp() throws {
        for number in 0..<Self.lookups {
            let key = number * 7_919 % Self.rows
            try connection.forEachRow("SELECT id, uid, body, sentAt FROM message WHERE id = \(key)") { row in
                let message = Message(
                    id: try row.get(at: 0), uid: try row.get(at: 1), body: try row.get(at: 2),
                    sentAt: try row.get(at: 3))
                guard message.id == Int64(key) else { throw BenchmarkFailure("another row was found") }
            }
        }
    }

    private func commit() throws {
        try connection.execute("DELETE FROM message")
        for id in 0..<Self.commits {
            try connection.transaction { try insertOne(Message(number: id)) }
        }
    }
}
