internal import CipherSQLite
import Foundation
import Testing

struct RowDecoderTests {
    enum Kind: String, Codable { case text, image }

    struct Message: Codable, Equatable {
        var id: Int64
        var body: String?
        var score: Double
        var isEdited: Bool
        var kind: Kind
        var photo: Data?
        var sentAt: Date
        var thread: UUID
    }

    private let db: Connection

    init() throws {
        fixture = try EngineFixture()
        db = try fixture.open()
        try db.execute("CREATE TABLE message(thread, sentAt, photo, kind, isEdited, score, body, id)")
    }

    private let fixture: EngineFixture

    private func insert(_ message: Message) throws {
        try db.execute(
            """
            INSERT INTO message(id, body, score, isEdited, kind, photo, sentAt, thread)
            VALUES (\(message.id), \(message.body), \(message.score), \(message.isEdited), \(message.kind.rawValue),
            \(message.photo), \(message.sentAt), \(message.thread))
            """)
    }

    @Test("A row decodes to a Codable value by the names of its columns")
    func decoding() throws {
        let full = Message(
            id: .max, body: "a\0b", score: 0.1, isEdited: true, kind: .image, photo: Data(),
            sentAt: Date(timeIntervalSince1970: 1_700_000_000.25), thread: UUID())
        let bare = Message(
            id: .min, body: nil, score: -1, isEdited: false, kind: .text, photo: nil,
            sentAt: Date(timeIntervalSince1970: -1), thread: UUID())
        for message in [full, bare] { try insert(message) }
        #expect(try db.rows(Message.self, "SELECT * FROM message ORDER BY id") == [bare, full])
        #expect(try db.row(Message.self, "SELECT * FROM message WHERE id = \(full.id)") == full)
        #expect(try db.row(Message.self, "SELECT * FROM message WHERE id = 0") == nil)
    }

    @Test("A missing column or a column of another type throws an error that names the column")
    func mismatch() throws {
        struct One: Codable { var number: Int }
        #expect {
            try db.rows(One.self, "SELECT 1 AS other")
        } throws: { error in
            guard case DecodingError.keyNotFound(let key, _) = error else { return false }
            return key.stringValue == "number"
        }
        #expect {
            try db.rows(One.self, "SELECT 'text' AS number")
        } throws: { error in
            guard case DecodingError.typeMismatch(_, let context) = error else { return false }
            return context.codingPath.map(\.stringValue) == ["number"]
        }
        #expect(throws: DecodingError.self) { try db.rows(One.self, "SELECT NULL AS number") }
    }

    @Test("A row is decoded by its own keys, independently of the keys used before and their order")
    func changingKeys() throws {
        struct Either: Decodable, Equatable {
            enum Kind: String, CodingKey { case kind }
            enum Left: String, CodingKey { case body, id }
            enum Right: String, CodingKey { case id, score }
            var text: String

            init(from decoder: any Decoder) throws {
                let kind = try decoder.container(keyedBy: Kind.self).decode(String.self, forKey: .kind)
                if kind == "left" {
                    let values = try decoder.container(keyedBy: Left.self)
                    text = try "\(values.decode(Int.self, forKey: .id)) \(values.decode(String.self, forKey: .body))"
                } else {
                    let values = try decoder.container(keyedBy: Right.self)
                    text = try "\(values.decode(Double.self, forKey: .score)) \(values.decode(Int.self, forKey: .id))"
                }
            }
        }
        try db.executeScript(
            """
            INSERT INTO message(id, kind, body, score) VALUES
                (1, 'left', 'a', 0.5), (2, 'right', 'b', 1.5), (3, 'left', 'c', 2.5)
            """)
        #expect(
            try db.rows(Either.self, "SELECT * FROM message ORDER BY id").map(\.text) == ["1 a", "1.5 2", "3 c"])
    }

    @Test func `A column is found as SQLite compares names, and by its exact name first`() throws {
        struct Post: Codable, Equatable {
            var authorID: Int?
            var É: Int?
        }
        struct Lower: Codable { var id: Int }
        struct Upper: Codable { var ID: Int }
        #expect(try db.rows(Post.self, "SELECT 5 AS authorId, 6 AS é") == [Post(authorID: 5, É: nil)])
        for sql: SQL in ["SELECT 1 AS ID, 2 AS id", "SELECT 2 AS id, 1 AS ID"] {
            #expect(try db.row(Lower.self, sql)?.id == 2)
            #expect(try db.row(Upper.self, sql)?.ID == 1)
        }
        #expect(try db.row(Lower.self, "SELECT 3 AS Id")?.id == 3)
    }

    @Test("A row with an unknown raw value of an enumeration throws")
    func unknownCase() throws {
        struct One: Codable { var kind: Kind }
        #expect(try db.row(One.self, "SELECT 'image' AS kind")?.kind == .image)
        #expect(throws: DecodingError.self) { try db.row(One.self, "SELECT 'video' AS kind") }
    }

    @Test("A row cannot be decoded as a list or as a single value")
    func otherShapes() throws {
        #expect(throws: DecodingError.self) { try db.rows([Int].self, "SELECT 1") }
        struct Nested: Codable {
            struct Inner: Codable { var value: Int }
            var inner: Inner
        }
        #expect(throws: DecodingError.self) { try db.rows(Nested.self, "SELECT 1 AS inner") }
    }
}
