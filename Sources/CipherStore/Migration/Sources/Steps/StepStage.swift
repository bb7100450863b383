internal import CipherSQLite

/// A part of the way from nothing to the app's version: the baseline or an update.
struct StepStage {
    /// A statement with the place that errors name, such as `sql_update_3.plist[1]`.
    struct Statement: Sendable {
        let place: String
        let sql: String
        /// The name of the stage; `nil` for one that is none of the app's.
        var step: String?
    }

    let name: String
    /// The version that the schema has afterwards; `nil` for the baseline.
    let version: SchemaVersion?
    /// `nil` for Swift, of which nobody can tell beforehand what it does.
    let statements: [Statement]?
    let work: MigrationSteps.Work

    init(name: String, version: SchemaVersion?, work: MigrationSteps.Work) {
        self.name = name
        self.version = version
        self.work = work
        if case .sql(let texts) = work {
            statements = Self.statements(of: texts, in: name)
        } else {
            statements = nil
        }
    }

    /// The statements of the texts: a text may hold several, or none but a comment.
    static func statements(of texts: [String], in name: String) -> [Statement] {
        texts.enumerated().flatMap { index, text in
            let statements = SQL.statements(of: text)
            return statements.enumerated().map { number, sql in
                Statement(
                    place: "\(name)[\(index)]" + (statements.count > 1 ? " statement \(number + 1)" : ""), sql: sql,
                    step: name)
            }
        }
    }
}
