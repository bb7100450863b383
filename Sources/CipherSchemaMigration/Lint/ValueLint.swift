internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// Counts the values of a table that a change would affect.
struct ValueLint {
    typealias Count = RowCounter.Count

    private let table: PresentSchema.Table
    private var counter: RowCounter

    init(_ state: DatabaseState, _ table: PresentSchema.Table, countsRows: Bool) {
        self.table = table
        counter = RowCounter(connection: state.connection, countsRows: countsRows)
    }

    /// The same lint, but with exact counts of rows.
    var counting: ValueLint {
        var lint = self
        lint.counter.countsRows = true
        return lint
    }

    /// Counts the rows that satisfy a condition.
    private func count(where condition: String) throws -> Count {
        try count("main.\(SQL.quoted(identifier: table.name)) WHERE \(condition)")
    }

    /// Counts the rows of a FROM clause.
    func count(_ rows: String) throws -> Count { try counter.count(rows) }

    /// Returns whether a condition that reads no columns is true; `false` also if SQLite cannot evaluate the condition.
    func isTrue(_ condition: String) throws -> Bool {
        do {
            return try !count("(SELECT 1 WHERE \(condition))").isZero
        } catch is DatabaseError {
            // For example, a function is not registered.
            return false
        }
    }

    func rows() throws -> Count { try count(where: "1") }

    /// Counts the values that would be lost with a column; a generated column stores no values.
    func values(of column: ColumnState) throws -> Count {
        guard column.generation == nil, let name = table.column(SQLName(column.name)).map(SQL.quoted(column:))
        else {
            return Count(number: 0)
        }
        return try count(where: "\(name) IS NOT NULL")
    }

    func nulls(in column: SQLName) throws -> Count {
        guard let name = table.column(column).map(SQL.quoted(column:)) else { return Count(number: 0) }
        return try count(where: "\(name) IS NULL")
    }

    /// Counts the values that would change if they were stored in a column with another affinity.
    ///
    /// A column without affinity would not convert them back.
    func changed(by new: Affinity, in column: SQLName, from old: Affinity) throws -> Count {
        guard let name = table.column(column).map(SQL.quoted(column:)) else { return Count(number: 0) }
        // Text is converted to a number if it looks like a number, which is the case if it equals that number.
        let number = "CAST(\(name) AS \(new == .real ? "REAL" : "NUMERIC"))"
        // CAST keeps large whole floats, such as '1.0e+16', but a column of type INTEGER or NUMERIC does not.
        let isDifferent =
            "CAST(\(number) AS TEXT) <> \(name) COLLATE BINARY"
            + (new == .real ? "" : " OR \(Self.isWholeFloat(number))")
        let text =
            "(typeof(\(name)) = 'text' AND CAST(\(name) AS NUMERIC) = \(name) "
            + "AND (\(old == .none ? "1" : isDifferent)))"
        switch new {
        case .text where old == .none: return try count(where: "typeof(\(name)) IN ('integer', 'real')")
        case .text:
            return try count(where: "typeof(\(name)) = 'real' AND CAST(CAST(\(name) AS TEXT) AS REAL) <> \(name)")
        case .integer where old == .none, .numeric where old == .none:
            return try count(where: "\(text) OR \(Self.isWholeFloat(name))")
        case .integer, .numeric: return try count(where: text)
        case .real where old == .none: return try count(where: "\(text) OR typeof(\(name)) = 'integer'")
        case .real: return try count(where: "\(text) OR \(Self.losesDigits("\(name)"))")
        case .none: return Count(number: 0)
        }
    }

    /// Returns SQL to test whether a value is a float that a column of type INTEGER or NUMERIC converts to an integer.
    private static func isWholeFloat(_ value: String) -> String {
        "(typeof(\(value)) = 'real' AND CAST(\(value) AS INTEGER) = \(value))"
    }

    /// Returns SQL to test whether a number is whole and a column of type REAL, which stores it as a float, alters it.
    ///
    /// A float of at least 2^63 cannot be equal to a 64-bit integer, and SQLite converts it to the largest integer.
    private static func losesDigits(_ number: String) -> String {
        "(typeof(\(number)) = 'integer' AND (CAST(CAST(\(number) AS REAL) AS INTEGER) <> \(number) "
            + "OR CAST(\(number) AS REAL) >= 9223372036854775808.0))"
    }

    /// Counts the values that a column of a STRICT table does not accept.
    func misfits(of type: String, in column: SQLName) throws -> Count {
        guard let name = table.column(column).map(SQL.quoted(column:)) else { return Count(number: 0) }
        let kind = "typeof(\(name))"
        let isNumber = "(\(kind) = 'text' AND CAST(\(name) AS NUMERIC) = \(name))"
        let isWhole = "CAST(CAST(\(name) AS NUMERIC) AS INTEGER) = CAST(\(name) AS NUMERIC)"
        switch SQLTokens.normalized(type).first {
        case "int", "integer":
            return try count(
                where: "NOT (\(kind) IN ('integer', 'null') OR ((\(kind) = 'real' OR \(isNumber)) AND \(isWhole)))")
        case "real": return try count(where: "NOT (\(kind) IN ('integer', 'real', 'null') OR \(isNumber))")
        case "text": return try count(where: "\(kind) = 'blob'")
        case "blob": return try count(where: "\(kind) NOT IN ('blob', 'null')")
        default: return Count(number: 0)
        }
    }

    /// Counts the whole numbers that would occur in several rows.
    func duplicates(ofNumbersIn column: SQLName) throws -> Count {
        guard let name = table.column(column).map(SQL.quoted(column:)) else { return Count(number: 0) }
        return try count(
            "(SELECT 1 FROM main.\(SQL.quoted(identifier: table.name)) WHERE \(name) IS NOT NULL "
                + "GROUP BY CAST(\(name) AS NUMERIC) HAVING count(*) > 1)")
    }

    /// Counts the values that occur in several rows although a key requires them to be unique.
    func duplicates(of key: TableShape.Key) throws -> Count {
        var columns: [String] = []
        var conditions: [String] = []
        for part in key.parts {
            guard let name = table.column(part.column).map(SQL.quoted(column:)) else { return Count(number: 0) }
            let collation = SQL.quoted(identifier: part.collation.text)
            columns.append("\(name) COLLATE \(collation)")
            conditions.append("\(name) IS NOT NULL")
        }
        return try count(
            "(SELECT 1 FROM main.\(SQL.quoted(identifier: table.name)) WHERE \(conditions.joined(separator: " AND ")) "
                + "GROUP BY \(columns.joined(separator: ", ")) HAVING count(*) > 1)")
    }
}
