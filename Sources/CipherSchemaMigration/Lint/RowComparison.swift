internal import CipherCatalog
internal import CipherSQLText
package import CipherSQLite

/// Determines whether every row of a table is also in other tables, comparing value by value and by storage class.
package struct RowComparison {
    /// A table of one of the connection's databases, with its columns.
    package struct Table {
        package let columns: [String]
        /// The names of columns in the database, if they differ from the schema's.
        let names: [String: String]
        fileprivate let source: String

        package init(_ name: String, columns: [String], names: [String: String] = [:], in schema: String = "main") {
            self.columns = columns
            self.names = names
            source = "\(SQL.quoted(identifier: schema)).\(SQL.quoted(identifier: name))"
        }

        /// Reads the columns that are neither generated nor hidden.
        package init(_ name: String, in schema: String, _ connection: Connection) throws {
            let columns = try ColumnState.read(table: name, in: schema, from: connection)
            self.init(
                name, columns: columns.filter { $0.generation == nil && !$0.isHidden }.map(\.name), in: schema)
        }
    }

    package let table: Table
    /// The rows to compare, as a WHERE clause on all tables.
    package var condition = ""

    package init(table: Table, condition: String = "") {
        self.table = table
        self.condition = condition
    }

    /// Returns whether the other tables contain every row, and one of them contains it at least as often.
    ///
    /// If in doubt, the result is `false`.
    package func isContained(in others: [Table], _ connection: Connection) throws -> Bool {
        let isEmpty = try connection.value(
            Bool.self, SQL(text: "SELECT NOT EXISTS (SELECT 1 FROM \(table.source)\(condition))"))
        if isEmpty == true { return true }
        let names = table.columns.map(SQLName.init)
        let comparable = others.filter { other in Set(other.columns.map(SQLName.init)).isSuperset(of: names) }
        guard !comparable.isEmpty else { return false }
        let all = ([rows(of: table, isOwn: true)] + comparable.map { rows(of: $0, isOwn: false) })
            .joined(separator: " UNION ALL ")
        // Text is compared by the collation of its column, unless another collation is specified.
        let values = (1...max(names.count, 1)).map { "type\($0), value\($0) COLLATE BINARY" }.joined(separator: ", ")
        return try connection.value(
            Bool.self,
            SQL(text: "SELECT EXISTS (SELECT 1 FROM (\(all)) GROUP BY \(values) HAVING max(own) > max(theirs))"))
            == false
    }

    /// Returns a SELECT of the distinct rows with their count, as the table's own count or another table's.
    ///
    /// The storage classes are compared as well, because to SQLite, numbers of different classes are equal.
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
