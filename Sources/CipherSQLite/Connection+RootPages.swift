extension Connection {
    /// The root pages of the b-trees of the main database that a query reads, in order.
    ///
    /// A name tells which table SQLite reads; its root page tells which b-tree that is.
    /// Source: SQLite, "The SQLite Bytecode Engine", OpenRead.
    package func rootPages(of query: SQL) throws -> [Int64] {
        var roots: [Int64] = []
        try withStatement("EXPLAIN \(query)", isKept: false) { statement in
            let row = Row(of: statement)
            while try statement.step() {
                if try row.get(String.self, at: 1) == "OpenRead", statement.integer(4) == 0 {
                    roots.append(statement.integer(3))
                }
            }
        }
        return roots
    }
}
