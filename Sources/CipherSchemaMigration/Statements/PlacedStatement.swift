internal import CipherSQLite

/// A statement with its place for errors, such as `sql_update_3.plist[1]`.
struct PlacedStatement: Sendable {
    let place: String
    let sql: String
    /// The name of the stage; `nil` for a statement that is not the app's own.
    var step: String?

    /// Returns the statements of the texts; a text may contain several, or only a comment.
    static func statements(of texts: [String], in name: String) -> [PlacedStatement] {
        texts.enumerated().flatMap { index, text in
            let statements = SQL.statements(of: text)
            return statements.enumerated().map { number, sql in
                PlacedStatement(
                    place: "\(name)[\(index)]" + (statements.count > 1 ? " statement \(number + 1)" : ""), sql: sql,
                    step: name)
            }
        }
    }
}
