internal import CipherCatalog
internal import CipherSQLText
package import CipherSQLite

/// Shows whether a table holds nothing that others lack: value by value, with storage classes.
package struct RowComparison {
    /// A table of one of the connection's databases, with its columns.
    package struct Table {
        package let columns: [String]
        /// What columns are called in the database, where that is another name.
        let names: [String: String]
        fileprivate let source: String

        package init(_ name: String, columns: [String], names: [String: String] = [:], in schema: String = "main") {
            self.columns = columns
            self.names = names
            source = "\(SQL.quoted(identifier: schema)).\(SQL.quoted(identifier: name))"
        }

        /// Reads the columns that hold values of their own.
        package init(_ name: String, in schema: String, _ connection: Connection) throws {
            let columns = try ColumnState.read(table: name, in: schema, from: connection)
            self.init(
                name, columns: columns.filter { $0.generation == nil && !$0.isHidden }.map(\.name), in: schema)
        }
    }

    package let table: Table
    /// Which rows count, as a WHERE clause on all tables.
    package var condition = ""

    package init(table: Table, condition: String = "") {
        self.table = table
        self.condition = condition
    }

    /// Whether other tables have every row, and one of them has equal ones at least as often.
    ///
    /// In doubt the answer is no.
    package func isContained(in others: [Table], _ connection: Connection) throws -> Bool {
        let isEmpty = try connection.value(
            Bool.self, SQL(text: "SELECT NOT EXISTS (SELECT 1 FROM \(table.source)\(condition))"))
        if isEmpty == true { return true }
        let names = table.columns.map(SQLName.init)
        let comparable = others.filter { other in Set(other.columns.map(SQLName.init)).isSuperset(of: names) }
        guard !comparable.isEmpty else { return false }
        let all = ([rows(of: table, isOwn: true)] + comparable.map { rows(of: $0, isOwn: false) })
            .joined(separator: " UNION ALL ")
        // Texts are equal by the collation of their column, unless another is asked for.
        let values = (1...max(names.count, 1)).map { "type\($0), value\($0) COLLATE BINARY" }.joined(separator: ", ")
        return try connection.value(
            Bool.self,
            SQL(text: "SELECT EXISTS (SELECT 1 FROM (\(all)) GROUP BY \(values) HAVING max(own) > max(theirs))"))
            == false
    }

    /// The different rows with their number, which is the table's own or another's.
    ///
    /// Numbers of different classes are equal to SQLite.
    private func rows(of other: Table, isOwn: Bool) -> String {
        let names = table.columns.map { SQL.quoted(column: other.names[$0] ?? $0) }
        let values = names.enumerated().map { place, name in
            "typeof(\(name)) AS type\(place + 1), \(name) COLLATE BINARY AS value\(place + 1)"
        }.joined(separator: ", ")
        let groups = (1...max(names.count * 2, 1)).map(String.init).joined(separator: ", ")
        let count = isOwn ? "count(*) AS own, 0 AS theirs" : "0 AS own, count(*) AS theirs"
        return "SELECT \(values), \(count) FROM \(other.source)\(condition) GROUP BY \(groups)"
    }
}
