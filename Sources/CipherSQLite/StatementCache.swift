/// Compiled statements of one connection by their text: the least recently used goes first.
///
/// A statement is out of the cache while it is in use, so that the same SQL can run inside its own loop.
struct StatementCache {
    private var statements: [Text: Statement] = [:]
    /// Texts in order of use, the latest last.
    private var order: [Text] = []
    private let capacity: Int
    /// The statement that was used last, beside the others: in a loop it is wanted again, and is found without a search.
    private var latest: Statement?

    /// SQL by its bytes.
    ///
    /// `String` compares by canonical equivalence, under which é in one scalar and in two are one text, and to SQLite
    /// two.
    private struct Text: Hashable {
        let sql: String

        static func == (left: Text, right: Text) -> Bool { left.sql.utf8.elementsEqual(right.sql.utf8) }

        func hash(into hasher: inout Hasher) {
            var sql = sql
            sql.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        }
    }

    init(capacity: Int) {
        self.capacity = capacity
    }

    mutating func take(_ sql: String) -> Statement? {
        if let statement = latest, statement.hasText(sql) {
            latest = nil
            return statement
        }
        let text = Text(sql: sql)
        guard let statement = statements.removeValue(forKey: text) else { return nil }
        if let position = order.lastIndex(of: text) { order.remove(at: position) }
        return statement
    }

    mutating func put(_ statement: Statement) {
        statement.reset()
        guard capacity > 0 else { return }
        if let latest { keep(latest) }
        latest = statement
    }

    private mutating func keep(_ statement: Statement) {
        let text = Text(sql: statement.sql)
        guard statements.updateValue(statement, forKey: text) == nil else { return }
        order.append(text)
        if order.count >= capacity { statements[order.removeFirst()] = nil }
    }

    mutating func removeAll() {
        latest = nil
        statements.removeAll()
        order.removeAll()
    }
}
