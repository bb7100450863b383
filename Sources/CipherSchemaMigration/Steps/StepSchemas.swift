internal import CipherErrors
internal import CipherSQLText

/// The effects of the steps on an empty database, statement by statement, which determine the schema that every version
/// should have.
///
/// The effects are known up to the first stage in Swift.
struct StepSchemas {
    /// A statement with its effects.
    struct Passage {
        let statement: PlacedStatement
        let traits: StatementTraits
        let change: SchemaChange

        /// Whether the statement writes rows and may do so again, which a step declares with `INSERT OR IGNORE`.
        var mayRepeat: Bool {
            guard traits.deletes.isEmpty, traits.updates.isEmpty else { return false }
            // After a WITH clause, the statement itself begins later, outside all parentheses.
            var depth = 0
            let words = SQLTokens(statement.sql).tokens.filter { token in
                if token.isKeyword("(") { depth += 1 }
                defer { if token.isKeyword(")") { depth -= 1 } }
                return depth == 0
            }
            guard let insert = words.firstIndex(where: { $0.isKeyword("INSERT") }) else { return false }
            let rest = words[(insert + 1)...].prefix(2)
            return rest.count == 2 && rest.first?.isKeyword("OR") == true && rest.last?.isKeyword("IGNORE") == true
        }
    }

    /// The stages before the first stage in Swift.
    let stages: [[Passage]]

    /// - Parameter everyLaunch: The statements that run after the stages.
    /// - Throws: ``StoreError`` with the code `configuration`: if something fails in a database with only the steps,
    ///   the steps are at fault.
    init(_ all: [StepStage], everyLaunch: [PlacedStatement], in scratch: ScratchDatabase) throws {
        var stages: [[Passage]] = []
        var schema = SchemaSnapshot()
        for stage in all {
            guard let statements = stage.statements else { break }
            stages.append(
                try statements.map { statement in
                    let traits = try scratch.run(statement, blaming: .configuration)
                    guard traits.isDefinition else {
                        return Passage(statement: statement, traits: traits, change: SchemaChange(none: schema))
                    }
                    let after = try scratch.snapshot(after: schema)
                    defer { schema = after }
                    return Passage(
                        statement: statement, traits: traits, change: SchemaChange(before: schema, after: after))
                })
        }
        self.stages = stages
        guard stages.count == all.count else { return }
        for statement in everyLaunch { _ = try scratch.run(statement, blaming: .configuration) }
    }
}
