/// Compiled statements of one connection, found by their text; the least recently used one is removed first.
///
/// A statement is not in the cache while it is in use, so that the same SQL can run inside its own loop.
package struct StatementCache {
    /// The statements in order of use, the latest last; in a loop, the latest is needed again and found at once.
    private var statements: ContiguousArray<Statement> = []
    private let capacity: Int

    package init(capacity: Int) {
        self.capacity = capacity
        statements.reserveCapacity(capacity + 1)
    }

    package mutating func take(_ sql: SQL) -> Statement? {
        guard let position = statements.lastIndex(where: { $0.has(sql) }) else { return nil }
        return statements.remove(at: position)
    }

    package mutating func put(_ statement: Statement) {
        statements.append(statement)
        if statements.count > capacity { statements.removeFirst() }
    }

    mutating func removeAll() {
        statements.removeAll()
    }
}
