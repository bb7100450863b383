internal import CipherSQLText

/// The parts and condition of a unique index.
struct UniqueIndex {
    private let name: String
    private(set) var parts: [String] = []
    private(set) var condition: String?

    /// Creates a unique index; `nil` if the index is not unique, or if its parts cannot be separated.
    init?(_ index: DatabaseState.Object) {
        let isUnique = SQLTokens(index.sql, first: 2).tokens.contains { $0.isKeyword("UNIQUE") }
        guard index.type == "index", isUnique, let text = TableText(index.sql), !text.items.isEmpty else { return nil }
        name = index.name
        for item in text.items {
            let all = SQLTokens(item.text)
            // A number alone would refer to a result column.
            guard let token = all.tokens.last, all.tokens.first?.kind != .number else { return nil }
            let last = all.tokens.count - 1
            let hasOrder = (token.isKeyword("ASC") || token.isKeyword("DESC")) && all.followsOperand(last)
            parts.append(hasOrder ? all.replacing([last: ""]) : item.text)
        }
        if !text.suffix.isEmpty { condition = SQLTokens(text.suffix).replacing([0: ""]) }
    }

    /// Returns the values that occur in several rows, as part of a FROM clause.
    ///
    /// - Parameter source: The rows, as part of a FROM clause.
    func duplicates(in source: String) -> String {
        let conditions = parts.map { "(\($0)) IS NOT NULL" } + (condition.map { ["(\($0))"] } ?? [])
        return "(SELECT 1 FROM \(source) WHERE \(conditions.joined(separator: " AND ")) "
            + "GROUP BY \(parts.map { "(\($0))" }.joined(separator: ", ")) HAVING count(*) > 1)"
    }

    /// Returns a description of duplicate values.
    func fault(_ duplicates: ValueLint.Count, in table: String) -> String {
        "index \(name) requires unique values, but \(duplicates.of("value")) of \(table) "
            + "\(duplicates.number == 1 ? "occurs" : "occur") more than once"
    }
}
