extension Connection {
    /// Returns the root pages of the main database's b-trees that a query reads, in order.
    ///
    /// The name determines which table SQLite reads, and the table's root page determines the b-tree.
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
