internal import CipherSQLText

/// The type affinity of a column, by which SQLite converts stored values.
///
/// Source: SQLite, "Datatypes In SQLite", section 3.1.
package enum Affinity: Sendable {
    case integer, text, none, real, numeric

    package init(_ type: String) {
        let name = SQLName(type).text
        func has(_ words: String...) -> Bool { words.contains { name.contains($0) } }
        self =
            if has("int") {
                .integer
            } else if has("char", "clob", "text") {
                .text
            } else if name.isEmpty || has("blob") {
                .none
            } else if has("real", "floa", "doub") {
                .real
            } else {
                .numeric
            }
    }
}

extension ColumnState {
    /// Returns the affinity of the column; in a strict table, a column of type ANY stores every value unchanged.
    package func affinity(isStrict: Bool) -> Affinity {
        isStrict && SQLName(type) == SQLName("ANY") ? .none : Affinity(type)
    }
}
