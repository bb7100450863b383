/// The row of the statement benchmarks.
struct Message: Codable {
    var id: Int64
    var uid: String
    var body: String
    var sentAt: Int64

    init(id: Int64, uid: String, body: String, sentAt: Int64) {
        self.id = id
        self.uid = uid
        self.body = body
        self.sentAt = sentAt
    }

    init(number: Int) {
        self.init(
            id: Int64(number), uid: "user-\(number % 500)", body: "message number \(number), of some length",
            sentAt: 1_600_000_000_000 + Int64(number))
    }
}
