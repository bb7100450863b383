/// Compiled statements of one connection by their text: the least recently used goes first.
///
/// A statement is out of the cache while it is in use, so that the same SQL can run inside its own loop.
struct StatementCache {
    private var statements: [String: Statement] = [:]
    /// Texts in order of use, the latest last.
    private var order: [String] = []
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
    }

    mutating func take(_ sql: String) -> Statement? {
        guard let statement = statements.removeValue(forKey: sql) else { return nil }
        if let position = order.lastIndex(of: sql) { order.remove(at: position) }
        return statement
    }

    mutating func put(_ statement: Statement) {
        statement.reset()
        guard capacity > 0, statements.updateValue(statement, forKey: statement.sql) == nil else { return }
        order.append(statement.sql)
        if order.count > capacity { statements[order.removeFirst()] = nil }
    }

    mutating func removeAll() {
        statements.removeAll()
        order.removeAll()
    }
}
