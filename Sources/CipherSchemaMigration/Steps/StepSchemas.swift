internal import CipherErrors
internal import CipherSQLText

/// What the steps do to an empty database, statement by statement: the schema that every version should have.
///
/// Known up to the first stage in Swift.
struct StepSchemas {
    /// A statement with what it did.
    struct Passage {
        let statement: PlacedStatement
        let traits: StatementTraits
        let change: SchemaChange

        /// Whether it writes rows and may do so once more: `INSERT OR IGNORE`, by which a step says so itself.
        var mayRepeat: Bool {
            guard traits.deletes.isEmpty, traits.updates.isEmpty else { return false }
            // Behind a WITH the statement begins later, outside of all parentheses.
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

    /// The stages before the first one in Swift.
    let stages: [[Passage]]

    /// - Parameter everyLaunch: What runs behind the stages.
    /// - Throws: ``StoreError`` with `configuration`: what fails where there are only the steps is their own fault.
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
