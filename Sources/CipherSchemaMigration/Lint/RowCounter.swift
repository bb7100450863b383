internal import CipherSQLite

/// Counts rows, or only checks whether there is any row.
struct RowCounter {
    let connection: Connection
    /// Whether rows are counted.
    ///
    /// Changes that are refused or made are counted; changes that are withheld would be counted at every launch.
    var countsRows: Bool

    /// A number of rows or values; the exact number may be unknown.
    struct Count {
        let number: Int?

        var isZero: Bool { number == 0 }

        /// Returns the count with a noun, such as `1204 rows`, or only `rows` if the number is unknown.
        func of(_ noun: String) -> String {
            guard let number else { return "\(noun)s" }
            return "\(number) \(noun)\(number == 1 ? "" : "s")"
        }
    }

    /// Counts the rows of a FROM clause.
    func count(_ rows: String) throws -> Count {
        let source = "FROM \(rows)"
        if countsRows {
            return Count(number: try connection.value(Int.self, SQL(text: "SELECT count(*) \(source)")) ?? 0)
        }
        let exists = try connection.value(Bool.self, SQL(text: "SELECT EXISTS (SELECT 1 \(source))")) ?? false
        return exists ? Count(number: nil) : Count(number: 0)
    }
}
